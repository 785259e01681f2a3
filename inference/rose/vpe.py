"""VPE: is the region that was segmented the one in the reference pictures, and if not, which one is?

The region's crop is compared with the prototype of the reference pictures. Below `low_similarity`, or where the
segmenter failed, the detector's boxes are compared too: the best one that reaches `accept_similarity` and is more alike
than the region was goes to the mask model. Otherwise the segmenter's own result stays. Both thresholds are not
published; they belong to an embedder and are settings. Crops are the tight boxes of regions and candidates, so that
like is compared with like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.config import RoseSection
from engine.core.geometry import Floats, Image, mask_box
from engine.core.protocols import Detection, Detector, DetectRequest, Embedder, MaskModel, SegmentResult
from engine.core.schema import ModelRef, TraceStep
from inference.rose.prototype import Prototype, make_prototype
from inference.segmenters.grounded_sam import mask_of_box


@dataclass(frozen=True, slots=True)
class VpeCase:
    """One image with what the segmenter made of it, the phrase of its candidates and the references of its answer."""

    image: Image
    phrase: str
    result: SegmentResult
    references: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class VpeOutcome:
    """The result to use and what led to it; `changed` says whether it is another than the segmenter's."""

    result: SegmentResult
    changed: bool
    trace: TraceStep


@dataclass
class _Open:
    case: VpeCase
    prototype: Prototype
    similarity: float | None
    values: dict[str, str] = field(default_factory=dict)


class Vpe:
    """Checks and corrects regions. Models are given loaded; `detector` gets the references as exemplars."""

    def __init__(self, detector: Detector, mask_model: MaskModel, embedder: Embedder, section: RoseSection) -> None:
        self.detector = detector
        self.mask_model = mask_model
        self.embedder = embedder
        self.section = section

    def models(self) -> tuple[ModelRef, ...]:
        return self.detector.model(), self.mask_model.model(), self.embedder.model()

    def check(self, cases: Sequence[VpeCase]) -> list[VpeOutcome]:
        """One outcome per case and in order; the detector runs once over all cases that are in doubt."""
        outcomes: list[VpeOutcome | None] = [None] * len(cases)
        doubted: list[tuple[int, _Open]] = []
        for place, case in enumerate(cases):
            opened = self._open(case)
            if isinstance(opened, VpeOutcome):
                outcomes[place] = opened
            else:
                doubted.append((place, opened))
        if doubted:
            requests = [
                DetectRequest(
                    image=opened.case.image,
                    phrases=(opened.case.phrase,),
                    exemplars={opened.case.phrase: opened.case.references},
                )
                for _, opened in doubted
            ]
            for (place, opened), boxes in zip(doubted, self.detector.detect(requests), strict=True):
                outcomes[place] = self._correct(opened, boxes)
        return [outcome for outcome in outcomes if outcome is not None]

    def _open(self, case: VpeCase) -> VpeOutcome | _Open:
        """Either the region is fine (or nothing is known to hold against it), or the case is in doubt."""
        if not case.references:
            return _keep(case, "no reference pictures", {})
        vectors = self.embedder.embed(list(case.references))
        prototype = make_prototype(vectors, min_similarity=self.section.cluster_similarity)
        if prototype is None:
            return _keep(case, "no reference pictures", {})
        values = {
            "references": str(len(case.references)),
            "cluster": " ".join(str(member) for member in prototype.members),
            "tightness": f"{prototype.tightness:.4f}",
        }
        box = mask_box(case.result.mask) if case.result.mask is not None else None
        similarity: float | None = None
        if box is not None:
            similarity = self._similar([box.crop(case.image)], prototype.vector)[0]
            values["similarity"] = f"{similarity:.4f}"
            if similarity >= self.section.low_similarity:
                return _keep(case, "the region is alike", values)
        return _Open(case=case, prototype=prototype, similarity=similarity, values=values)

    def _correct(self, opened: _Open, boxes: Sequence[Detection]) -> VpeOutcome:
        case, values = opened.case, opened.values
        if not boxes:
            return _keep(case, "the detector has no candidate", values)
        alike = self._similar([found.box.crop(case.image) for found in boxes], opened.prototype.vector)
        best = max(range(len(boxes)), key=lambda place: (alike[place], boxes[place].score, -place))
        values["candidates"] = " ".join(f"{value:.4f}" for value in alike)
        values["best"] = str(best)
        if alike[best] < self.section.accept_similarity:
            return _keep(case, "no candidate is alike enough", values)
        if opened.similarity is not None and alike[best] <= opened.similarity:
            return _keep(case, "no candidate is more alike than the region", values)
        made = mask_of_box(self.mask_model, case.image, boxes[best])
        if made.mask is None:
            return _keep(case, "the mask model found nothing in the best candidate", values)
        step = TraceStep(module="vpe", input=case.phrase, output="replaced by the best candidate", values=values)
        return VpeOutcome(result=SegmentResult(mask=made.mask, text=case.result.text), changed=True, trace=step)

    def _similar(self, crops: Sequence[Image], prototype: Floats) -> list[float]:
        vectors = self.embedder.embed(list(crops))
        return [float(value) for value in vectors @ prototype]


def _keep(case: VpeCase, why: str, values: dict[str, str]) -> VpeOutcome:
    step = TraceStep(module="vpe", input=case.phrase, output=f"kept: {why}", values=values)
    return VpeOutcome(result=case.result, changed=False, trace=step)

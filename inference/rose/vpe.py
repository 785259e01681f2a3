"""VPE: is the region that was segmented the one in the reference pictures, and if not, which one is?

The region's crop is compared with the prototype of the reference pictures. Below `low_similarity`, or where the
segmenter failed, the detector's boxes are compared too: the best one that reaches `accept_similarity` and is more alike
than the region was goes to the mask model. Otherwise the segmenter's own result stays. Crops are the tight boxes of
regions and candidates, so that like is compared with like.

The paper publishes neither threshold, and a similarity means something only within one embedder, so each has its own
defaults here (`THRESHOLDS`) and `[rose]` may set others. The portable embedder sees colours and outlines: on the sample
week other things in a picture reach 0.55 to 0.82 and the right one 0.70 to 0.96, so almost every region is questioned
and the comparison of candidates decides. CLIP's figures are of the usual size for crops of one thing and of two, and
not measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.config import RoseSection
from engine.core.geometry import Floats, Image, mask_box
from engine.core.protocols import Detection, Detector, DetectRequest, Embedder, MaskModel, SegmentResult
from engine.core.schema import ModelRef, TraceStep
from inference.rose.prototype import Prototype, make_prototype
from inference.segmenters.base import failure_of
from inference.segmenters.grounded_sam import mask_of_box

#: (low, accept) similarity by embedder, by the name before a colon; other embedders get the last.
THRESHOLDS = {"portable": (0.97, 0.4), "clip": (0.8, 0.65), "": (0.5, 0.5)}


@dataclass(frozen=True, slots=True)
class VpeCase:
    """One image with what the segmenter made of it, the phrases of its candidates and the references of its answer."""

    image: Image
    phrases: tuple[str, ...]
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

    def alike(self) -> tuple[Image, ...]:
        """The reference pictures of the largest cluster."""
        return tuple(self.case.references[member] for member in self.prototype.members)


class Vpe:
    """Checks and corrects regions. Models are given loaded; `detector` gets the references as exemplars."""

    def __init__(self, detector: Detector, mask_model: MaskModel, embedder: Embedder, section: RoseSection) -> None:
        self.detector = detector
        self.mask_model = mask_model
        self.embedder = embedder
        self.section = section
        low, accept = THRESHOLDS.get(embedder.name.partition(":")[0], THRESHOLDS[""])
        self.low = low if section.low_similarity is None else section.low_similarity
        self.accept = accept if section.accept_similarity is None else section.accept_similarity

    def models(self) -> tuple[ModelRef, ...]:
        return self.detector.model(), self.mask_model.model(), self.embedder.model()

    def check(self, cases: Sequence[VpeCase]) -> list[VpeOutcome]:
        """One outcome per case and in order; the detector runs once over all cases that are in doubt.

        Where memory does not suffice the cases are checked one by one, and one that does not fit alone stays as it is.
        """
        try:
            return self._check(cases)
        except Exception as error:
            if failure_of(error).kind != "out_of_memory":
                raise
        if len(cases) == 1:
            return [_keep(cases[0], "memory did not suffice for the check", {})]
        return [self.check([case])[0] for case in cases]

    def _check(self, cases: Sequence[VpeCase]) -> list[VpeOutcome]:
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
                    phrases=opened.case.phrases,
                    # pictures outside the cluster show something else and would be found too
                    exemplars=dict.fromkeys(opened.case.phrases, opened.alike()),
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
            if similarity >= self.low:
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
        if alike[best] < self.accept:
            return _keep(case, "no candidate is alike enough", values)
        if opened.similarity is not None and alike[best] <= opened.similarity + self.section.replace_gain:
            return _keep(case, "no candidate is more alike than the region", values)
        made = mask_of_box(self.mask_model, case.image, boxes[best])
        if made.mask is None:
            return _keep(case, "the mask model found nothing in the best candidate", values)
        step = TraceStep(
            module="vpe", input=" . ".join(case.phrases), output="replaced by the best candidate", values=values
        )
        return VpeOutcome(result=SegmentResult(mask=made.mask, text=case.result.text), changed=True, trace=step)

    def _similar(self, crops: Sequence[Image], prototype: Floats) -> list[float]:
        vectors = self.embedder.embed(list(crops))
        return [float(value) for value in vectors @ prototype]


def _keep(case: VpeCase, why: str, values: dict[str, str]) -> VpeOutcome:
    step = TraceStep(module="vpe", input=" . ".join(case.phrases), output=f"kept: {why}", values=values)
    return VpeOutcome(result=case.result, changed=False, trace=step)

"""Detector and mask model behind one `Segmenter`: the prompt's noun phrase, its candidates, the best one's mask.

Without knowledge of names "Which person ...?" is a "person", so among several people it takes whoever the detector
scores highest. That is what makes it the baseline. Loading the models is `segmentation`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.core.geometry import Image
from engine.core.protocols import (
    Detection,
    Detector,
    DetectRequest,
    MaskModel,
    Segmentation,
    SegmentRequest,
    SegmentResult,
)
from engine.core.schema import Failure, ModelRef
from inference.segmenters.phrases import phrases_of


class GroundedSam:
    """`Segmenter` out of a detector and a mask model; `phrases` turns a prompt into the detector's words."""

    def __init__(
        self,
        detector: Detector,
        mask_model: MaskModel,
        *,
        name: str = "grounded-sam",
        phrases: Callable[[str], tuple[str, ...]] = phrases_of,
    ) -> None:
        self.name = name
        self.detector = detector
        self.mask_model = mask_model
        self.phrases = phrases

    def models(self) -> tuple[ModelRef, ...]:
        return self.detector.model(), self.mask_model.model()

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request. No candidate is a failure of kind `no_box`, as the detector decided nothing."""
        asked = [self.phrases(request.prompt) for request in requests]
        found = self.detector.detect(
            [
                DetectRequest(image=request.image, phrases=phrases)
                for request, phrases in zip(requests, asked, strict=True)
            ]
        )
        masks = iter(
            _masks(self.mask_model, [(r.image, boxes[0]) for r, boxes in zip(requests, found, strict=True) if boxes])
        )
        return [
            next(masks) if boxes else SegmentResult(mask=None, failure=_no_box(phrases))
            for phrases, boxes in zip(asked, found, strict=True)
        ]


def _no_box(phrases: Sequence[str]) -> Failure:
    return Failure(kind="no_box", detail=f"the detector found no '{' . '.join(phrases)}'")


def _masks(mask_model: MaskModel, items: Sequence[tuple[Image, Detection]]) -> list[SegmentResult]:
    """The mask of one candidate per image; models that can look at several images do so together."""
    together = getattr(mask_model, "segment_many", None)
    if together is None:
        return [mask_of_box(mask_model, image, found) for image, found in items]
    made = together([(image, [found.box]) for image, found in items])
    return [_result(mask_model, found, one[0]) for (_, found), one in zip(items, made, strict=True)]


def mask_of_box(mask_model: MaskModel, image: Image, found: Detection) -> SegmentResult:
    """The mask of one candidate; a box in which the mask model finds nothing is a failure."""
    return _result(mask_model, found, mask_model.segment(image, [found.box])[0])


def _result(mask_model: MaskModel, found: Detection, made: Segmentation) -> SegmentResult:
    if not made.mask.any():
        failure = Failure(kind="no_mask", detail=f"{mask_model.name} found nothing in the box of '{found.phrase}'")
        return SegmentResult(mask=None, failure=failure, text=found.phrase)
    return SegmentResult(mask=made.mask, text=found.phrase, score=found.score * made.score)

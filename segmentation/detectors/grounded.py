"""What detectors that ground phrases have in common: captions, batches of equal images, thresholds.

A model gives its raw numbers per image and caption (`RawBoxes`); everything before and after is here, so that the two
implementations of Grounding DINO differ in nothing but whose code runs the network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Floats, Image
from engine.core.protocols import Detection, DetectRequest
from segmentation.detectors import boxes as geometry
from segmentation.detectors.groundingdino_image import shown_size
from segmentation.detectors.groundingdino_text import Caption, assign_phrases, build_captions
from segmentation.device import in_batches


@dataclass(frozen=True, slots=True)
class RawBoxes:
    """What the model said for one image and caption: `probabilities` (queries, tokens) without padding tokens,
    `boxes` (queries, 4) normalised centre boxes, `tokens` the token indices of each phrase of the caption."""

    caption: Caption
    probabilities: Floats
    boxes: Floats
    tokens: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One caption for one image, which is shown at `size` (height, width)."""

    request: int
    image: Image
    size: tuple[int, int]
    caption: Caption


class GroundedDetector(ABC):
    """Base of the detectors. Images of one shown size go through the model together; images of different sizes don't,
    because padding changes the backbone's numbers, and a box must not depend on its neighbours in a batch."""

    def __init__(self, config: AnnotateSection, *, sides: tuple[int, int]) -> None:
        self._config = config
        #: The shorter and the longest side, in pixels, at which images are shown.
        self._sides = sides

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
        """Candidates per request, best first, `phrase` in the request's own spelling.

        Raises `OutOfMemory` when one image alone does not fit.
        """
        found: list[list[Detection]] = []
        for request, raws in zip(requests, self.raw(requests), strict=True):
            height, width = request.image.shape[:2]
            all_boxes, all_scores = [np.zeros((0, 4), np.float32)], [np.zeros(0, np.float32)]
            all_labels: list[str | None] = []
            for raw in raws:
                labels, scores = assign_phrases(
                    raw.probabilities, raw.tokens, text_threshold=self._config.text_threshold
                )
                all_boxes.append(raw.boxes)
                all_scores.append(scores)
                all_labels += [None if i is None else raw.caption.phrases[i] for i in labels]
            found.append(
                geometry.select(
                    np.concatenate(all_boxes),
                    np.concatenate(all_scores),
                    all_labels,
                    width=width,
                    height=height,
                    box_threshold=self._config.box_threshold,
                    nms_iou=self._config.nms_iou,
                )
            )
        return found

    def raw(self, requests: Sequence[DetectRequest]) -> list[list[RawBoxes]]:
        """The model's own numbers, one entry per caption of each request, before any threshold."""
        groups: dict[tuple[int, int], list[Job]] = defaultdict(list)
        for index, request in enumerate(requests):
            captions, _ = build_captions(request.phrases, count_tokens=self._count_tokens)
            size = shown_size(*request.image.shape[:2], short_side=self._sides[0], long_side=self._sides[1])
            groups[size] += [Job(index, request.image, size, caption) for caption in captions]
        out: list[list[RawBoxes]] = [[] for _ in requests]
        for jobs in groups.values():
            results = in_batches(jobs, self._forward, batch=self._config.batch_images)
            for job, raw in zip(jobs, results, strict=True):
                out[job.request].append(raw)
        return out

    @abstractmethod
    def _count_tokens(self, text: str) -> int:
        """Tokens of a text without the marks at its ends."""

    @abstractmethod
    def _forward(self, jobs: Sequence[Job]) -> list[RawBoxes]:
        """One pass over jobs of one size."""

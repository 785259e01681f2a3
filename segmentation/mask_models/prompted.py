"""What mask models that are prompted with boxes have in common: one encoding per image, batches, the best mask.

A model encodes images and gives small logits for boxes; from there to full-size masks the way is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Box, Floats, Image
from engine.core.protocols import Points, Segmentation
from segmentation.device import in_batches, inference

#: Boxes per decoder pass; the decoder is light, full-size masks are made one by one.
BOXES = 64
#: Logit shift of the stability score (segment-anything's default for its automatic masks).
STABILITY_OFFSET = 1.0


class BoxMaskModel(ABC):
    """Base of the mask models: of the masks that the network offers for a box the one with the best predicted quality
    is taken, on the small logits, and only that one is brought to full size."""

    def __init__(self, config: AnnotateSection, *, device: Any) -> None:
        self._config = config
        self._device = device
        self._dtype = config.dtype if device.type != "cpu" else "float32"

    def segment(self, image: Image, boxes: Sequence[Box], *, points: Sequence[Points] = ()) -> list[Segmentation]:
        """Masks (H, W) aligned with the boxes. Raises `OutOfMemory` when the image or one box does not fit.

        A box's `points` are given to the network beside it, all as foreground.
        """
        if not any(points):
            return self.segment_many([(image, boxes)])[0]
        if len(points) != len(boxes):
            raise ValueError(f"{len(points)} lists of points for {len(boxes)} boxes")
        (feature,) = in_batches([image], self._encoded, batch=1)
        height, width = image.shape[:2]
        found = []
        for box, own in zip(boxes, points, strict=True):
            corners = self._to_frame(np.array([[box.x1, box.y1, box.x2, box.y2]], np.float64), height, width)
            placed = self._to_frame(np.asarray(own, np.float64).reshape(-1, 2), height, width) if own else None

            def decode(part: Sequence[Any], placed: Any = placed) -> Any:
                return self._decode(feature, np.stack(part), height, width, points=placed)

            # one box at a time: boxes with other numbers of points are prompts of another length
            found += in_batches(list(corners), decode, batch=1, what="boxes")
        return found

    def segment_many(self, items: Sequence[tuple[Image, Sequence[Box]]]) -> list[list[Segmentation]]:
        """Like `segment` for several images, whose encodings share batches of `batch_images`."""
        wanted = [i for i, (_, boxes) in enumerate(items) if boxes]
        features = in_batches([items[i][0] for i in wanted], self._encoded, batch=self._config.batch_images)
        out: list[list[Segmentation]] = [[] for _ in items]
        for index, feature in zip(wanted, features, strict=True):
            image, boxes = items[index]
            height, width = image.shape[:2]
            corners = np.array([[b.x1, b.y1, b.x2, b.y2] for b in boxes], np.float64)
            prompts = self._to_frame(corners, height, width)

            def decode(part: Sequence[Any], feature: Any = feature, size: tuple[int, int] = (height, width)) -> Any:
                return self._decode(feature, np.stack(part), *size)

            out[index] = in_batches(list(prompts), decode, batch=BOXES, what="boxes")
        return out

    def _encoded(self, images: Sequence[Image]) -> Sequence[Any]:
        with inference(self._device, self._dtype):
            return self._encode(images)

    def _decode(
        self, feature: Any, prompts: Floats, height: int, width: int, *, points: Any = None
    ) -> list[Segmentation]:
        with inference(self._device, self._dtype):
            low, quality = self._low_resolution(feature, prompts, points=points)
            found = []
            for row, column in enumerate(quality.argmax(dim=1).tolist()):
                logits = self._full_size(low[row : row + 1, column : column + 1], height, width)[0, 0]
                score = min(1.0, max(0.0, float(quality[row, column])))
                found.append(Segmentation((logits > 0).cpu().numpy(), score, stability(logits)))
            return found

    @abstractmethod
    def _encode(self, images: Sequence[Image]) -> Sequence[Any]:
        """The network's features, one entry per image."""

    @abstractmethod
    def _to_frame(self, corners: Any, height: int, width: int) -> Any:
        """Corner boxes (N, 4), or points (N, 2), in image pixels to the frame in which the network takes prompts."""

    @abstractmethod
    def _low_resolution(self, feature: Any, prompts: Any, *, points: Any = None) -> tuple[Any, Any]:
        """Logits (N, C, h, w) with threshold 0 and quality guesses (N, C), float32, for boxes (N, 4) in the network's
        frame; `points` (K, 2) on the thing may go with a single box."""

    @abstractmethod
    def _full_size(self, low: Any, height: int, width: int) -> Any:
        """Small logits (N, C, h, w) to (N, C, height, width) of the image."""


def stability(logits: Any, *, offset: float = STABILITY_OFFSET) -> float:
    """Overlap of the masks cut `offset` above and below 0, 0 to 1; 0.0 if both are empty."""
    small = int((logits > offset).sum())
    large = int((logits > -offset).sum())
    return small / large if large else 0.0

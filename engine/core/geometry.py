"""Boxes and masks in memory. Pixels of the upright image; x right, y down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

import numpy as np
import numpy.typing as npt

#: An upright RGB image, uint8, shape (H, W, 3).
Image = npt.NDArray[np.uint8]
#: A boolean mask, shape (H, W), at the image's full size.
Mask = npt.NDArray[np.bool_]
#: Float array of any shape.
Floats = npt.NDArray[np.float32]

BlobId = NewType("BlobId", str)


@dataclass(frozen=True, slots=True)
class Box:
    """Corners in pixels, (x1, y1) inside and (x2, y2) just outside, floats."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def width(self) -> float:
        return max(0.0, self.x2 - self.x1)

    @property
    def height(self) -> float:
        return max(0.0, self.y2 - self.y1)

    @property
    def area(self) -> float:
        return self.width * self.height

    @property
    def center(self) -> tuple[float, float]:
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    def clip(self, width: int, height: int) -> Box:
        """The part inside an image of that size."""
        return Box(
            min(max(self.x1, 0.0), width),
            min(max(self.y1, 0.0), height),
            min(max(self.x2, 0.0), width),
            min(max(self.y2, 0.0), height),
        )

    def iou(self, other: Box) -> float:
        """Intersection over union, 0 if both are empty."""
        inter = self.intersection(other)
        union = self.area + other.area - inter
        return inter / union if union > 0 else 0.0

    def intersection(self, other: Box) -> float:
        """Shared area in square pixels."""
        w = min(self.x2, other.x2) - max(self.x1, other.x1)
        h = min(self.y2, other.y2) - max(self.y1, other.y1)
        return w * h if w > 0 and h > 0 else 0.0

    def crop(self, image: Image) -> Image:
        """The pixels inside, at least 1x1, a view of the image."""
        height, width = image.shape[:2]
        x1 = int(min(max(np.floor(self.x1), 0), width - 1))
        y1 = int(min(max(np.floor(self.y1), 0), height - 1))
        x2 = int(min(max(np.ceil(self.x2), x1 + 1), width))
        y2 = int(min(max(np.ceil(self.y2), y1 + 1), height))
        return image[y1:y2, x1:x2]


def mask_box(mask: Mask) -> Box | None:
    """The tight box of a mask, None for an empty one."""
    ys = np.flatnonzero(mask.any(axis=1))
    if ys.size == 0:
        return None
    xs = np.flatnonzero(mask.any(axis=0))
    return Box(float(xs[0]), float(ys[0]), float(xs[-1] + 1), float(ys[-1] + 1))


def mask_iou(a: Mask, b: Mask) -> float:
    """Intersection over union of two masks of one shape; 1.0 if both are empty.

    Counts are int64, so that large masks do not wrap. Raises ValueError for different shapes.
    """
    if a.shape != b.shape:
        raise ValueError(f"masks of different shapes: {a.shape} and {b.shape}")
    union = int(np.count_nonzero(a | b))
    return int(np.count_nonzero(a & b)) / union if union else 1.0

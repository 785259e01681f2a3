"""Pictures of coloured blocks, and a detector, a mask model and an embedder that really work on them.

They stand for the heavy models where a test is about what goes on around those: blocks are found by connected colour,
largest first, and told apart by mean colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import ndimage

from engine.core.geometry import Box, Floats, Image, Mask
from engine.core.protocols import Detection, DetectRequest, Points, Segmentation
from engine.core.schema import ModelRef

GREY = (128, 128, 128)
Colour = tuple[int, int, int]


def scene(blocks: Sequence[tuple[Colour, tuple[int, int, int, int]]], *, size: tuple[int, int] = (80, 120)) -> Image:
    """A grey picture (H, W) with blocks: (colour, (x1, y1, x2, y2))."""
    picture = np.full((*size, 3), GREY, np.uint8)
    for colour, (x1, y1, x2, y2) in blocks:
        picture[y1:y2, x1:x2] = colour
    return picture


def block_mask(box: tuple[int, int, int, int], *, size: tuple[int, int] = (80, 120)) -> Mask:
    mask = np.zeros(size, bool)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask


class BlockDetector:
    """All blocks for any phrase, larger ones with higher scores; counts its calls."""

    name = "blocks"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def model(self) -> ModelRef:
        return ModelRef(role="detector", name=self.name)

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
        self.calls.append(len(requests))
        return [self._one(request) for request in requests]

    def _one(self, request: DetectRequest) -> list[Detection]:
        labels, count = _blocks(request.image)
        found = []
        for number in range(1, count + 1):
            ys, xs = np.nonzero(labels == number)
            box = Box(float(xs.min()), float(ys.min()), float(xs.max() + 1), float(ys.max() + 1))
            found.append(Detection(box, min(1.0, 0.4 + box.area / labels.size), request.phrases[0]))
        return sorted(found, key=lambda item: (-item.score, item.box.x1))


class BlockMasker:
    """The block that fills most of a box, or the one at its first point; `asked` keeps the points."""

    name = "blocks"

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[float, float], ...]] = []

    def model(self) -> ModelRef:
        return ModelRef(role="mask_model", name=self.name)

    def segment(self, image: Image, boxes: Sequence[Box], *, points: Sequence[Points] = ()) -> list[Segmentation]:
        labels, _ = _blocks(image)
        made = []
        self.asked += [tuple(own) for own in points]
        for place, box in enumerate(boxes):
            at = points[place][0] if points and points[place] else None
            if at is not None and (
                found := labels[min(int(at[1]), labels.shape[0] - 1), min(int(at[0]), labels.shape[1] - 1)]
            ):
                made.append(Segmentation(labels == found))
                continue
            inside = labels[int(box.y1) : int(box.y2), int(box.x1) : int(box.x2)]
            counts = np.bincount(inside.ravel(), minlength=1)
            counts[0] = 0
            mask: Mask = labels == int(counts.argmax()) if counts.any() else np.zeros(labels.shape, bool)
            made.append(Segmentation(mask))
        return made


class ColourEmbedder:
    """Unit vectors of how far the mean colour is from grey, so that a plain block is its colour's direction."""

    name = "colour"

    def model(self) -> ModelRef:
        return ModelRef(role="embedder", name=self.name)

    def embed(self, images: Sequence[Image]) -> Floats:
        rows = [image.reshape(-1, 3).mean(axis=0) - 128.0 for image in images]
        return np.array([row / max(1e-6, float(np.linalg.norm(row))) for row in rows], np.float32).reshape(-1, 3)


def _blocks(image: Image) -> tuple[np.ndarray, int]:
    """Connected parts of one colour other than grey, numbered from 1."""
    return _labelled(image.tobytes(), image.shape[0], image.shape[1])


@lru_cache(maxsize=64)
def _labelled(pixels: bytes, height: int, width: int) -> tuple[np.ndarray, int]:
    red, green, blue = np.moveaxis(np.frombuffer(pixels, np.uint8).reshape(height, width, 3).astype(np.int32), 2, 0)
    codes = (red << 16) | (green << 8) | blue
    labels = np.zeros((height, width), int)
    count = 0
    for code in np.unique(codes):
        if code == (GREY[0] << 16) | (GREY[1] << 8) | GREY[2]:
            continue
        parts, found = ndimage.label(codes == code)
        labels[parts > 0] = parts[parts > 0] + count
        count += found
    labels.setflags(write=False)
    return labels, count

"""Pixel counts of a predicted against a true mask. Everything else is arithmetic on these integers.

Both masks are taken as spans (`inference.spans`): counting then costs as much as there are spans, not pixels, and a
prediction is never decoded to an image. Counts are exact Python integers, so that nothing wraps; pixels that the
truth ignores are counted apart and are in no other count. Masks of different shapes are an error and are never
broadcast, transposed or resized, except that a fixed square size may be asked for, as the evaluator of GRES uses
(480).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engine.core.geometry import Mask
from engine.core.masks import decode_rle, rle_runs
from engine.core.schema import Rle
from inference.spans import Places, Spans, spans_of


@dataclass(frozen=True, slots=True)
class Counts:
    """Pixels of one (image, mask) pair. `union` is target + predicted - intersection."""

    intersection: int
    target: int
    predicted: int
    ignored: int = 0
    predicted_ignored: int = 0
    pixels: int = 0

    @property
    def union(self) -> int:
        return self.target + self.predicted - self.intersection


@dataclass(frozen=True, slots=True)
class Prepared:
    """A true mask laid out for counting many predictions; `shape` is (height, width) before resizing to a square of
    `size_px`."""

    target: Spans
    ignore: Spans | None
    shape: tuple[int, int]
    size_px: int | None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width that are counted in."""
        return (self.size_px, self.size_px) if self.size_px else self.shape

    @property
    def pixels(self) -> int:
        return self.size[0] * self.size[1]

    @property
    def ignored(self) -> int:
        return self.ignore.area if self.ignore else 0


def prepare(mask: Mask, *, ignore: Mask | None = None, size_px: int | None = None) -> Prepared:
    """Lay out a true mask (H, W). Where mask and ignore overlap, ignore wins."""
    shape = (int(mask.shape[0]), int(mask.shape[1]))
    if size_px is not None:
        mask = _square(mask, size_px)
        ignore = None if ignore is None else _square(ignore, size_px)
    if ignore is None or not ignore.any():
        return Prepared(spans_of(mask), None, shape, size_px)
    return Prepared(spans_of(mask & ~ignore), spans_of(ignore), shape, size_px)


def count(truth: Prepared, mask: Mask) -> Counts:
    """Counts of a predicted mask (H, W). Raises ValueError for another shape than the truth's."""
    if mask.shape != truth.shape:
        raise ValueError(f"the mask is {mask.shape[0]}x{mask.shape[1]}, the truth {truth.shape[0]}x{truth.shape[1]}")
    return _count(truth, spans_of(mask if truth.size_px is None else _square(mask, truth.size_px)).edges)


def count_rle(truth: Prepared, rle: Rle) -> Counts:
    """Counts of a predicted mask as run-length code. Raises ValueError for another shape or a broken code."""
    if rle.size != truth.shape:
        raise ValueError(f"the mask is {rle.size[0]}x{rle.size[1]}, the truth {truth.shape[0]}x{truth.shape[1]}")
    if truth.size_px is not None:
        return count(truth, decode_rle(rle))
    edges = np.cumsum(rle_runs(rle))
    return _count(truth, edges[: len(edges) // 2 * 2])


def nothing(truth: Prepared) -> Counts:
    """Counts of an empty prediction."""
    return Counts(0, truth.target.area, 0, truth.ignored, 0, truth.pixels)


def everything(truth: Prepared) -> Counts:
    """Counts of the whole image."""
    target, ignored = truth.target.area, truth.ignored
    return Counts(target, target, truth.pixels - ignored, ignored, ignored, truth.pixels)


def rectangle(truth: Prepared, corners: tuple[float, float, float, float]) -> Counts:
    """Counts of a box given as shares of width and height (x1, y1, x2, y2), 0 to 1, at least one pixel."""
    height, width = truth.size
    x1, x2 = _side(corners[0], corners[2], width)
    y1, y2 = _side(corners[1], corners[3], height)
    inside = 0 if truth.ignore is None else truth.ignore.in_box((x1, y1, x2, y2), height)
    return Counts(
        intersection=truth.target.in_box((x1, y1, x2, y2), height),
        target=truth.target.area,
        predicted=(x2 - x1) * (y2 - y1) - inside,
        ignored=truth.ignored,
        predicted_ignored=inside,
        pixels=truth.pixels,
    )


def _count(truth: Prepared, edges: Places) -> Counts:
    inside = truth.ignore.shared(edges) if truth.ignore else 0
    return Counts(
        intersection=truth.target.shared(edges),
        target=truth.target.area,
        predicted=int(edges[1::2].sum() - edges[::2].sum()) - inside,
        ignored=truth.ignored,
        predicted_ignored=inside,
        pixels=truth.pixels,
    )


def _side(first: float, last: float, length: int) -> tuple[int, int]:
    low, high = sorted((first, last))
    start = min(int(low * length), length - 1)
    return start, max(start + 1, min(length, round(high * length)))


def _square(mask: Mask, size_px: int) -> Mask:
    small = cv2.resize(mask.view(np.uint8), (size_px, size_px), interpolation=cv2.INTER_NEAREST)
    found: Mask = small.astype(np.bool_)
    return found

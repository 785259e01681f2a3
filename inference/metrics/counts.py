"""Pixel counts of a predicted against a true mask. Everything else is arithmetic on these integers.

Both masks are taken as spans: where they begin and end when the pixels are read down the columns, as COCO's
run-length codes are. Counting then costs as much as there are spans, not pixels, and a prediction is never
decoded to an image. Counts are exact Python integers, so that nothing wraps; pixels that the truth ignores are
counted apart and are in no other count. Masks of different shapes are an error and are never broadcast, transposed
or resized, except that a fixed square size may be asked for, as the evaluator of GRES uses (480).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engine.core.geometry import Mask
from engine.core.masks import decode_rle, rle_runs
from engine.core.schema import Rle

Places = npt.NDArray[np.int64]


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
class Spans:
    """A mask as `edges` begin, end, begin, end ... (ascending, end just outside) down the columns, and `before`,
    the number of its pixels before each edge."""

    edges: Places
    before: Places

    @classmethod
    def of(cls, edges: Places) -> Spans:
        """From edges in even number."""
        lengths = edges[1::2] - edges[::2]
        before = np.zeros(len(edges), dtype=np.int64)
        before[1::2] = np.cumsum(lengths)
        before[2::2] = before[1:-1:2]
        return cls(edges, before)

    @property
    def area(self) -> int:
        return int(self.before[-1]) if len(self.before) else 0

    def shared(self, begins: Places, ends: Places) -> int:
        """Pixels of the mask inside spans that do not overlap each other."""
        if not len(self.edges) or not len(begins):
            return 0
        # the count is linear between edges with slope 0 or 1, so that float64 interpolation is exact
        inside = np.interp(ends, self.edges, self.before) - np.interp(begins, self.edges, self.before)
        return int(inside.sum())


@dataclass(frozen=True, slots=True)
class Prepared:
    """A true mask laid out for counting many predictions; `shape` is (height, width) before resizing to a square of
    `size_px`. `mask` and `ignore_mask` are the pixels that `target` and `ignore` describe."""

    target: Spans
    ignore: Spans | None
    shape: tuple[int, int]
    size_px: int | None
    mask: Mask
    ignore_mask: Mask | None

    @property
    def pixels(self) -> int:
        return self.size_px**2 if self.size_px else self.shape[0] * self.shape[1]

    @property
    def ignored(self) -> int:
        return self.ignore.area if self.ignore else 0


def prepare(
    mask: Mask, *, ignore: Mask | None = None, size_px: int | None = None, box: tuple[int, int, int, int] | None = None
) -> Prepared:
    """Lay out a true mask (H, W); `box` (x, y, width, height) saves looking for it. Where mask and ignore overlap,
    ignore wins."""
    shape = (int(mask.shape[0]), int(mask.shape[1]))
    if size_px is not None:
        mask, box = _square(mask, size_px), None
        ignore = None if ignore is None else _square(ignore, size_px)
    if ignore is None or not ignore.any():
        return Prepared(_spans(mask, box), None, shape, size_px, mask, None)
    mask = mask & ~ignore
    return Prepared(_spans(mask), _spans(ignore), shape, size_px, mask, ignore)


def count(truth: Prepared, mask: Mask) -> Counts:
    """Counts of a predicted mask (H, W). Raises ValueError for another shape than the truth's."""
    if mask.shape != truth.shape:
        raise ValueError(f"the mask is {mask.shape[0]}x{mask.shape[1]}, the truth {truth.shape[0]}x{truth.shape[1]}")
    edges = _spans(mask if truth.size_px is None else _square(mask, truth.size_px)).edges
    return _count(truth, edges[::2], edges[1::2])


def count_rle(truth: Prepared, rle: Rle) -> Counts:
    """Counts of a predicted mask as run-length code. Raises ValueError for another shape or a broken code."""
    if rle.size != truth.shape:
        raise ValueError(f"the mask is {rle.size[0]}x{rle.size[1]}, the truth {truth.shape[0]}x{truth.shape[1]}")
    if truth.size_px is not None:
        return count(truth, decode_rle(rle))
    edges = np.cumsum(rle_runs(rle))
    begins = edges[: len(edges) // 2 * 2 : 2]
    return _count(truth, begins, edges[1::2])


def nothing(truth: Prepared) -> Counts:
    """Counts of an empty prediction."""
    return Counts(0, truth.target.area, 0, truth.ignored, 0, truth.pixels)


def everything(truth: Prepared) -> Counts:
    """Counts of the whole image."""
    target, ignored = truth.target.area, truth.ignored
    return Counts(target, target, truth.pixels - ignored, ignored, ignored, truth.pixels)


def rectangle(truth: Prepared, corners: tuple[float, float, float, float]) -> Counts:
    """Counts of a box given as shares of width and height (x1, y1, x2, y2), 0 to 1, at least one pixel."""
    height, width = truth.mask.shape
    x1, x2 = _side(corners[0], corners[2], width)
    y1, y2 = _side(corners[1], corners[3], height)
    inside = 0 if truth.ignore_mask is None else int(np.count_nonzero(truth.ignore_mask[y1:y2, x1:x2]))
    return Counts(
        intersection=int(np.count_nonzero(truth.mask[y1:y2, x1:x2])),
        target=truth.target.area,
        predicted=(x2 - x1) * (y2 - y1) - inside,
        ignored=truth.ignored,
        predicted_ignored=inside,
        pixels=truth.pixels,
    )


def _count(truth: Prepared, begins: Places, ends: Places) -> Counts:
    inside = truth.ignore.shared(begins, ends) if truth.ignore else 0
    return Counts(
        intersection=truth.target.shared(begins, ends),
        target=truth.target.area,
        predicted=int((ends - begins).sum()) - inside,
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


def _spans(mask: Mask, box: tuple[int, int, int, int] | None = None) -> Spans:
    # only the part around the mask is turned; a row of background below keeps the columns apart
    x, y, width, height = box or cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8))
    if not width:
        return Spans.of(np.zeros(0, dtype=np.int64))
    part = mask[y : y + height, x : x + width].view(np.uint8)
    turned = cv2.transpose(cv2.copyMakeBorder(part, 0, 1, 0, 0, cv2.BORDER_CONSTANT, value=0))
    flat = turned.reshape(-1).view(np.bool_)
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if flat[0]:
        edges = np.concatenate([[0], edges])
    column, row = np.divmod(edges.astype(np.int64), height + 1)
    places = (x + column) * mask.shape[0] + y + row
    # a span that goes on in the next column is one
    joined = np.flatnonzero(places[1:-1:2] == places[2::2]) * 2 + 1
    return Spans.of(np.delete(places, np.concatenate([joined, joined + 1])))

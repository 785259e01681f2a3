"""Pixel counts of a predicted against a true mask. Everything else is arithmetic on these integers.

Counts are exact Python integers, so that nothing wraps; pixels that the truth ignores are counted apart and are
in no other count. Masks of different shapes are an error and are never broadcast, transposed or resized, except
that a fixed square size may be asked for, as the evaluator of GRES uses (480).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engine.core.geometry import Mask

Bytes = npt.NDArray[np.uint8]


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
    """A true mask laid out for counting many predictions: columns first, as run-length codes are."""

    mask: Bytes
    ignore: Bytes | None
    shape: tuple[int, int]
    target: int
    ignored: int
    size_px: int | None


def prepare(mask: Mask, *, ignore: Mask | None = None, size_px: int | None = None) -> Prepared:
    """Lay out a true mask (H, W). Where mask and ignore overlap, ignore wins."""
    shape = (int(mask.shape[0]), int(mask.shape[1]))
    target = _columns(mask, size_px)
    left = None
    ignored = 0
    if ignore is not None:
        left = _columns(ignore, size_px)
        target = cv2.bitwise_and(target, cv2.bitwise_xor(left, 1)).astype(np.uint8, copy=False)
        ignored = cv2.countNonZero(left)
    return Prepared(target, left, shape, cv2.countNonZero(target), ignored, size_px)


def count(truth: Prepared, mask: Mask) -> Counts:
    """Counts of a predicted mask (H, W). Raises ValueError for another shape than the truth's."""
    if mask.shape != truth.shape:
        raise ValueError(f"the mask is {mask.shape[0]}x{mask.shape[1]}, the truth {truth.shape[0]}x{truth.shape[1]}")
    predicted = _columns(mask, truth.size_px)
    inside = 0
    if truth.ignore is not None:
        inside = cv2.countNonZero(cv2.bitwise_and(predicted, truth.ignore))
    return Counts(
        intersection=cv2.countNonZero(cv2.bitwise_and(predicted, truth.mask)),
        target=truth.target,
        predicted=cv2.countNonZero(predicted) - inside,
        ignored=truth.ignored,
        predicted_ignored=inside,
        pixels=int(truth.mask.size),
    )


def nothing(truth: Prepared) -> Counts:
    """Counts of an empty prediction."""
    return Counts(0, truth.target, 0, truth.ignored, 0, int(truth.mask.size))


def everything(truth: Prepared) -> Counts:
    """Counts of the whole image."""
    pixels = int(truth.mask.size)
    return Counts(truth.target, truth.target, pixels - truth.ignored, truth.ignored, truth.ignored, pixels)


def rectangle(truth: Prepared, corners: tuple[float, float, float, float]) -> Counts:
    """Counts of a box given as shares of width and height (x1, y1, x2, y2), 0 to 1, at least one pixel."""
    width, height = truth.mask.shape
    x1, x2 = _span(corners[0], corners[2], width)
    y1, y2 = _span(corners[1], corners[3], height)
    inside = 0
    if truth.ignore is not None:
        inside = int(np.count_nonzero(truth.ignore[x1:x2, y1:y2]))
    return Counts(
        intersection=int(np.count_nonzero(truth.mask[x1:x2, y1:y2])),
        target=truth.target,
        predicted=(x2 - x1) * (y2 - y1) - inside,
        ignored=truth.ignored,
        predicted_ignored=inside,
        pixels=int(truth.mask.size),
    )


def _span(first: float, last: float, length: int) -> tuple[int, int]:
    low, high = sorted((first, last))
    start = min(int(low * length), length - 1)
    return start, max(start + 1, min(length, round(high * length)))


def _columns(mask: Mask, size_px: int | None) -> Bytes:
    """Bytes 0/1 of shape (W, H), contiguous; a decoded run-length code already lies like that."""
    turned = mask.T
    flat = turned.view(np.uint8) if turned.flags.c_contiguous else cv2.transpose(mask.view(np.uint8))
    if size_px is not None:
        flat = cv2.resize(flat, (size_px, size_px), interpolation=cv2.INTER_NEAREST)
    found: Bytes = flat
    return found

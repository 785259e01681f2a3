"""READ's points: where in the picture the [SEG] state finds itself, as positive, negative and undecided points.

The similarity of the picture's patches is made coarse, its crop undone roughly, the highest and the lowest cells
become points, and each is moved a fraction of a pixel towards its surroundings. Settings as published for the 7B model,
and those that its authors note for 13B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.geometry import Floats

#: Cells and pixels that the crop never showed.
_UNSEEN = -1.0


@dataclass(frozen=True, slots=True)
class PointRule:
    """`coarse` divides the patch grid; points from `positive` up are labelled 1, down to `negative` 0, between -1."""

    coarse: int
    count: int
    positive: float
    negative: float = 0.2


SEVEN_B = PointRule(coarse=2, count=30, positive=0.8)
THIRTEEN_B = PointRule(coarse=1, count=60, positive=0.6)


def pick_points(
    similarity: Floats, *, height: int, width: int, side: int, rule: PointRule = SEVEN_B
) -> tuple[Floats, Any]:
    """Points (n, 2) as (x, y) in image pixels and their labels (n,) for an image of that size.

    `similarity` has one value per patch, row by row; `side` is the side in pixels of the square that was seen.
    """
    grid = round(len(similarity) ** 0.5)
    raw = np.asarray(similarity, np.float32).reshape(grid, grid)
    cells = grid // rule.coarse
    small = _resize(raw, cells, cells) if rule.coarse > 1 else raw
    padded = _undo_crop(_unit(small), height, width, fill=_UNSEEN)
    rows, columns, labels = _candidates(padded, rule)
    y, x = _pixels(rows, height, padded.shape[0]), _pixels(columns, width, padded.shape[1])
    full = _undo_crop(_resize(_unit(raw), side, side), height, width, fill=0.0)
    return _centre(_resize(full, height, width), np.stack([x, y], axis=1)), labels


def _pixels(cells: Any, size: int, count: int) -> Any:
    """The pixels at the centres of cells, truncated; in float32 like the original, where a product just below a whole
    number counts as the one before."""
    centres = (cells + 0.5).astype(np.float32) * np.float32(size / count)
    return np.minimum(centres.astype(np.int64), size - 1)


def _unit(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _resize(values: Floats, height: int, width: int) -> Floats:
    import torch
    from torch.nn.functional import interpolate

    found = interpolate(torch.from_numpy(values)[None, None], (height, width), mode="bilinear", align_corners=False)
    return np.asarray(found[0, 0].numpy(), np.float32)


def _undo_crop(values: Floats, height: int, width: int, *, fill: float) -> Floats:
    """Pads the square on both sides to the image's proportions, roughly: whole cells, the same on both sides."""
    n = values.shape[0]
    scale = n / min(height, width)
    rows, columns = (max(0, (int(length * scale) - n) // 2) for length in (height, width))
    return np.pad(values, ((rows, rows), (columns, columns)), constant_values=fill)


def _candidates(grid: Floats, rule: PointRule) -> tuple[Any, Any, Any]:
    """Rows, columns and labels of the first `count` cells: highest first, then lowest first, then the rest in order."""
    import torch

    flat = torch.from_numpy(grid).flatten()
    high = torch.nonzero(flat >= rule.positive).flatten()
    low = torch.nonzero((flat >= 0) & (flat <= rule.negative)).flatten()
    between = torch.nonzero((flat > rule.negative) & (flat < rule.positive)).flatten()
    high = high[torch.argsort(flat[high], descending=True)]
    low = low[torch.argsort(flat[low])]
    labels = np.concatenate([np.full(len(high), 1), np.full(len(low), 0), np.full(len(between), -1)]).astype(np.int64)
    order = torch.cat([high, low, between])[: rule.count].numpy()
    return order // grid.shape[1], order % grid.shape[1], labels[: rule.count]


def _centre(full: Floats, points: Any) -> Floats:
    """Each point moved to the mean place under soft-max of the map times a bell of one pixel around the point."""
    height, width = full.shape
    weights = np.exp(full.astype(np.float64) - float(full.max()))
    ys, xs = np.arange(height, dtype=np.float64), np.arange(width, dtype=np.float64)
    # The bell is below float32's smallest number beyond some ten pixels, so only a window matters.
    reach = 12
    found = np.empty((len(points), 2), np.float64)
    for row, (x, y) in enumerate(points.tolist()):
        top, bottom = max(0, y - reach), min(height, y + reach + 1)
        left, right = max(0, x - reach), min(width, x + reach + 1)
        bell = np.exp(-((ys[top:bottom, None] - y) ** 2 + (xs[None, left:right] - x) ** 2))
        share = weights[top:bottom, left:right] * bell
        total = share.sum()
        found[row] = (share.sum(axis=0) @ xs[left:right] / total, share.sum(axis=1) @ ys[top:bottom] / total)
    return found.astype(np.float32)

"""From a detector's raw boxes to candidates in pixels: threshold, clipping, one box per object.

Used by every detector that predicts normalised centre boxes. numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core.geometry import Box, Floats
from engine.core.protocols import Detection


def to_corners(boxes: Floats, *, width: int, height: int) -> Floats:
    """Normalised (cx, cy, w, h), shape (N, 4), to (x1, y1, x2, y2) in pixels, clipped to the image."""
    cx, cy, w, h = (boxes[:, i].astype(np.float64) for i in range(4))
    corners = np.stack([(cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height], 1)
    limits = np.array([width, height, width, height], np.float64)
    return np.asarray(np.clip(corners, 0.0, limits), np.float32)


def overlaps(boxes: Floats) -> Floats:
    """Intersection over union of all pairs, shape (N, N)."""
    x1, y1, x2, y2 = (boxes[:, i].astype(np.float64) for i in range(4))
    area = (x2 - x1) * (y2 - y1)
    w = np.clip(np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1), 0, None)
    h = np.clip(np.minimum(y2[:, None], y2) - np.maximum(y1[:, None], y1), 0, None)
    inter = w * h
    union = area[:, None] + area - inter
    return np.asarray(np.divide(inter, union, out=np.zeros_like(inter), where=union > 0), np.float32)


def suppress(boxes: Floats, order: Sequence[int], *, iou: float) -> list[int]:
    """Non-maximum suppression: the indices of `order` that overlap no earlier kept one by more than `iou`."""
    if not order:
        return []
    table = overlaps(boxes)
    kept: list[int] = []
    for index in order:
        if all(table[index, other] <= iou for other in kept):
            kept.append(index)
    return kept


def select(
    boxes: Floats,
    scores: Floats,
    labels: Sequence[str | None],
    *,
    width: int,
    height: int,
    box_threshold: float,
    nms_iou: float,
) -> list[Detection]:
    """The candidates among raw predictions, best first.

    Kept are boxes with a phrase, a score strictly above the threshold and an area inside the image; of the boxes of
    one phrase that overlap by more than `nms_iou` the best stays. Boxes or scores that are not numbers are left out.
    """
    corners = to_corners(boxes, width=width, height=height)
    sides = np.minimum(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    # Written so that a comparison with NaN is false and drops the box.
    usable = np.isfinite(corners).all(axis=1) & (scores > box_threshold) & (sides > 0)
    order = [i for i in np.argsort(-scores, kind="stable").tolist() if usable[i] and labels[i] is not None]
    kept: set[int] = set()
    for label in dict.fromkeys(labels[i] for i in order):
        kept.update(suppress(corners, [i for i in order if labels[i] == label], iou=nms_iou))
    return [
        Detection(Box(*(float(v) for v in corners[i])), float(scores[i]), str(labels[i])) for i in order if i in kept
    ]

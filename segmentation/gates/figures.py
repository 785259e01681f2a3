"""The figures behind the gates: small functions over masks and boxes, without thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core.geometry import Box, Mask


def area_share(mask: Mask) -> float:
    """Share of the image that the mask covers."""
    return float(np.count_nonzero(mask)) / mask.size if mask.size else 0.0


def box_fill(mask: Mask, box: Box) -> float:
    """Share of the box that the mask fills; what lies outside the box does not count."""
    height, width = mask.shape
    inside = box.clip(width, height)
    if inside.area <= 0:
        return 0.0
    part = mask[round(inside.y1) : round(inside.y2), round(inside.x1) : round(inside.x2)]
    return float(np.count_nonzero(part)) / part.size if part.size else 0.0


def parts_loss(mask: Mask) -> float:
    """Share of the mask outside its largest 8-connected part; 0 for an empty mask."""
    import cv2

    count, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count <= 2:
        return 0.0
    areas = stats[1:, cv2.CC_STAT_AREA].astype(np.int64)
    return 1.0 - float(areas.max()) / float(areas.sum())


def overlap(mask: Mask, others: Sequence[Mask]) -> float:
    """Largest share of the mask that lies in one other entity's mask."""
    own = int(np.count_nonzero(mask))
    if own == 0:
        return 0.0
    return max((int(np.count_nonzero(mask & other)) / own for other in others), default=0.0)


def border_share(mask: Mask) -> float:
    """How much of an image side the mask runs along, for the worst of the top, left and right sides.

    The bottom is left out: busts and people behind tables end there, and are whole all the same.
    """
    if not mask.size:
        return 0.0
    return float(max(mask[0].mean(), mask[:, 0].mean(), mask[:, -1].mean()))


def face_share(mask: Mask, face: Box) -> float:
    """Share of a face's ellipse that the mask covers."""
    import cv2

    height, width = mask.shape
    disc: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = np.zeros((height, width), np.uint8)
    cv2.ellipse(disc, (face.center, (0.8 * face.width, 0.8 * face.height), 0.0), 1, -1)
    total = int(np.count_nonzero(disc))
    return int(np.count_nonzero(mask & (disc > 0))) / total if total else 0.0


def face_of(box: Box, faces: Sequence[Box]) -> Box | None:
    """The largest face that lies in the upper three quarters of a box, None if none does."""
    inside = [
        face
        for face in faces
        if box.intersection(face) >= 0.6 * face.area and face.center[1] <= box.y1 + 0.75 * box.height
    ]
    return max(inside, key=lambda face: (face.area, -face.x1), default=None)


def best_iou(box: Box, others: Sequence[Box]) -> float:
    """Overlap with the best of some boxes, 0 without any."""
    return max((box.iou(other) for other in others), default=0.0)

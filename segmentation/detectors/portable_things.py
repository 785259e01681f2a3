"""Boxes of things: by their reference pictures where there are any, else by what stands out from the picture.

A reference is found by local features, and its outline (what differs from the picture's own border) is laid into the
scene. A thing without references gets the regions that differ most from the colours at the border of the scene,
whatever they are: such a box carries a low score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Box, Floats, Image, Mask, mask_box
from segmentation import features
from segmentation.mask_models.portable_people import shrink

_OUTLINE_SIDE_PX = 320
_SALIENT_SIDE_PX = 240
#: Scores of regions that merely stand out lie between these: enough to be a candidate, never as good as a match.
_SALIENT_SCORES = (0.36, 0.6)


def by_reference(image: Image, scene: features.Features, references: Sequence[Image]) -> list[tuple[Box, float]]:
    """Where the references are found in an image: boxes with scores, best first, one per reference at most."""
    height, width = image.shape[:2]
    found = []
    for reference in references:
        match = features.find(reference, scene)
        if match is None:
            continue
        box = features.placed_box(match, outline_of(reference), width, height)
        if box.width >= 4 and box.height >= 4:
            found.append((box, match.score))
    return sorted(found, key=lambda pair: (-pair[1], pair[0].x1, pair[0].y1))


def outline_of(reference: Image) -> npt.NDArray[np.float64]:
    """Points (N, 2) around the thing in a reference picture; the whole picture if it has no plain border."""
    import cv2

    height, width = reference.shape[:2]
    whole = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    small, scale = shrink(reference, _OUTLINE_SIDE_PX)
    mask = foreground(small)
    if mask is None:
        return whole
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    points = np.concatenate([contour.reshape(-1, 2) for contour in contours]).astype(np.float64)
    return np.asarray((points + 0.5) / scale)


def foreground(image: Image) -> Mask | None:
    """What differs from a plain border, None if the border is not plain or nothing differs."""
    import cv2

    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB).astype(np.float32)
    border = np.concatenate([lab[:3].reshape(-1, 3), lab[-3:].reshape(-1, 3), lab[:, 0], lab[:, -1]])
    middle = np.median(border, axis=0)
    spread = float(np.percentile(np.linalg.norm(border - middle, axis=1), 85))
    if spread > 14:
        return None
    differs = (np.linalg.norm(lab - middle, axis=2) > max(10.0, 2.0 * spread)).astype(np.uint8)
    differs = cv2.morphologyEx(differs, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    differs = cv2.morphologyEx(differs, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(differs)
    if count <= 1:
        return None
    areas = stats[1:, cv2.CC_STAT_AREA]
    kept = [index + 1 for index, area in enumerate(areas) if area >= 0.1 * areas.max()]
    mask: Mask = np.isin(labels, kept)
    return mask if 0.01 <= float(mask.mean()) <= 0.97 else None


def salient(image: Image, *, limit: int = 8) -> list[tuple[Box, float]]:
    """Regions that stand out from the colours at the picture's border, best first."""
    import cv2

    small, scale = shrink(image, _SALIENT_SIDE_PX)
    strength = _strength(small)
    boxes: list[tuple[Box, float]] = []
    low, high = _SALIENT_SCORES
    for level in (0.35, 0.55):
        mask = (strength > level).astype(np.uint8)
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        count, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
        for number in range(1, count):
            if stats[number, cv2.CC_STAT_AREA] < 0.004 * mask.size:
                continue
            part: Mask = labels == number
            box = mask_box(part)
            if box is None or box.area > 0.85 * mask.size:
                continue
            full = Box(box.x1 / scale, box.y1 / scale, box.x2 / scale, box.y2 / scale)
            full = full.clip(image.shape[1], image.shape[0])
            boxes.append((full, low + (high - low) * float(strength[part].mean())))
    boxes.sort(key=lambda pair: (-pair[1], pair[0].x1, pair[0].y1))
    kept: list[tuple[Box, float]] = []
    for box, score in boxes:
        if all(box.iou(other) < 0.6 for other, _ in kept):
            kept.append((box, score))
    return kept[:limit]


def _strength(image: Image) -> Floats:
    """0 to 1 per pixel: distance in Lab colour to the nearest of the border's main colours."""
    import cv2

    lab = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2LAB), (0, 0), 2.0).astype(np.float32)
    edge = max(2, round(0.03 * max(image.shape[:2])))
    border = np.concatenate(
        [lab[:edge].reshape(-1, 3), lab[:, :edge].reshape(-1, 3), lab[:, -edge:].reshape(-1, 3)]
    ).astype(np.float32)
    cv2.setRNGSeed(1)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 20, 1.0)
    _, labels, centers = cv2.kmeans(border, min(6, len(border)), None, criteria, 1, cv2.KMEANS_PP_CENTERS)
    share = np.bincount(labels.ravel(), minlength=len(centers)) / labels.size
    main = centers[share >= 0.05]
    distance = np.linalg.norm(lab[:, :, None, :] - main[None, None], axis=3).min(axis=2)
    top = float(np.percentile(distance, 99))
    return np.asarray((distance / max(top, 12.0)).clip(0, 1), np.float32)

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
#: How many more of a kind are looked for.
_LOOK_ALIKES = 2


def by_reference(image: Image, scene: features.Features, references: Sequence[Image]) -> list[tuple[Box, float]]:
    """Where the references are found in an image: boxes with scores, best first; one box per place.

    References that are found in the same place are laid over the scene together: what most of them agree with is the
    thing, what they don't is their own background.
    """
    height, width = image.shape[:2]
    places: list[list[tuple[Image, features.Match, Box]]] = []
    found = [(picture, match) for picture in references if (match := features.find(picture, scene)) is not None]
    found.sort(key=lambda pair: -pair[1].inliers)
    for picture, match in found:
        _settle(places, picture, match, width, height)
    # look-alikes: what reappears beside the first place is a candidate too, or it would pass for the only one
    for picture, _ in found[:2]:
        rest = scene
        for _ in range(_LOOK_ALIKES):
            for place in places:
                rest = features.without(rest, place[0][2])
            again = features.find(picture, rest)
            if again is None or not _settle(places, picture, again, width, height):
                break
    boxes = []
    for place in places:
        score = max(match.score * features.colour_agreement(picture, image, match) for picture, match, _ in place)
        agreed = _agreed(image, [(picture, match) for picture, match, _ in place], place[0][2])
        boxes.append((agreed or place[0][2], score))
    return sorted(boxes, key=lambda pair: (-pair[1], pair[0].x1, pair[0].y1))


def _settle(
    places: list[list[tuple[Image, features.Match, Box]]],
    picture: Image,
    match: features.Match,
    width: int,
    height: int,
) -> bool:
    """Put a find to the place it belongs to, or make it one of its own; whether it did."""
    box = features.placed_box(match, outline_of(picture), width, height)
    if box.width < 4 or box.height < 4:
        return False
    for place in places:
        if place[0][2].iou(box) > 0.3:
            place.append((picture, match, box))
            return True
    places.append([(picture, match, box)])
    return True


def _agreed(image: Image, placed: Sequence[tuple[Image, features.Match]], around: Box) -> Box | None:
    """The box of what the placed references have in common with the scene, None if that is unclear."""
    import cv2

    height, width = image.shape[:2]
    margin = 0.12 * max(around.width, around.height)
    view = Box(around.x1 - margin, around.y1 - margin, around.x2 + margin, around.y2 + margin).clip(width, height)
    crop = np.ascontiguousarray(view.crop(image))
    small, scale = shrink(crop, _OUTLINE_SIDE_PX)
    left, top = int(view.x1), int(view.y1)
    into = np.array([[scale, 0, -left * scale], [0, scale, -top * scale], [0, 0, 1]], np.float64)
    spots = placed[0][1].points
    hull = np.zeros(small.shape[:2], np.uint8)
    corners = cv2.convexHull(((spots - np.array([left, top])) * scale).astype(np.int32))
    cv2.fillConvexPoly(hull, corners, 1)
    if int(hull.sum()) < 25:
        return None
    size = (small.shape[1], small.shape[0])
    differences = []
    for picture, match in placed:
        warp = into @ match.transform
        laid = cv2.warpPerspective(picture, warp, size, flags=cv2.INTER_AREA)
        known = cv2.warpPerspective(np.full(picture.shape[:2], 255, np.uint8), warp, size) > 200
        differences.append(_difference(small, laid, known, hull > 0))
    # a scene pixel belongs to the thing if all references that fit show the same there: a background is alike by
    # chance in one or two, not in all
    misfits = [float(np.percentile(item[hull > 0], 70)) for item in differences]
    best_fit = min(misfits)
    fitting = [item for item, misfit in zip(differences, misfits, strict=True) if misfit <= best_fit + 6.0]
    most = np.max(np.stack(fitting), axis=0)
    limit = max(14.0, 2.0 * float(np.percentile(most[hull > 0], 70)))
    same = cv2.morphologyEx((most < limit).astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    reach = max(3, round(0.03 * max(size))) | 1
    same = cv2.morphologyEx(same, cv2.MORPH_CLOSE, np.ones((reach, reach), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(same)
    inside = np.bincount(labels[hull > 0], minlength=len(stats))
    inside[0] = 0
    best = int(inside.argmax())
    if inside[best] < 0.4 * int(hull.sum()):
        return None
    box = mask_box(labels == best)
    if box is None:
        return None
    pad = 1.5  # the smoothed edge of a thing agrees with no background: it lies a little further out
    x1, y1, x2, y2 = box.x1 - pad, box.y1 - pad, box.x2 + pad, box.y2 + pad
    full = Box(x1 / scale + left, y1 / scale + top, x2 / scale + left, y2 / scale + top)
    return full.clip(width, height)


def _difference(scene: Image, laid: Image, known: Mask, trusted: Mask) -> Floats:
    """Distance per pixel of a scene and a picture laid over it, after the picture's light was fitted to the scene's
    where they surely show the same; 255 where the picture does not reach. Grey pictures are compared in grey."""
    import cv2

    first, second = scene.astype(np.float32), laid.astype(np.float32)
    if float(np.ptp(laid[known], axis=1).mean() if known.any() else 0) < 6:
        first, second = (np.repeat(item.mean(axis=2, keepdims=True), 3, axis=2) for item in (first, second))
    where = trusted & known
    if int(where.sum()) >= 25:
        for channel in range(3):
            a, b = first[..., channel][where], second[..., channel][where]
            gain = float(np.clip(a.std() / max(b.std(), 1.0), 0.5, 2.0))
            second[..., channel] = (second[..., channel] - b.mean()) * gain + a.mean()
    # the fit is good to a pixel or two: each side is smoothed, and edges are forgiven
    blurred = [cv2.GaussianBlur(item, (0, 0), 1.5) for item in (first, second)]
    distance = np.abs(blurred[0] - blurred[1]).max(axis=2)
    distance = cv2.erode(distance, np.ones((3, 3), np.uint8))
    return np.where(known, distance, 255.0).astype(np.float32)


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

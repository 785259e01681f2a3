"""Local features: does a picture of a thing reappear in another picture, where, and how surely?

SIFT (Lowe 2004) with the ratio test and a RANSAC similarity transform (Fischler and Bolles 1981), all OpenCV's.
It speaks of rigid things with texture, such as products and logos; for people it only recognises the same photograph.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Box, Image

#: Pictures are shrunk to so many pixels a side before features are taken.
SCENE_SIDE_PX, REFERENCE_SIDE_PX = 800, 400
#: Lowe's ratio, and the fewest agreeing features that count as a find.
RATIO, MIN_INLIERS = 0.8, 7
#: Agreeing features at which the score is 1 - 1/e.
_SOFT_INLIERS = 12.0
#: Mean distance in Lab a and b that light and compression make, and the scale on which more of it counts.
_SAME_COLOUR, _OTHER_COLOUR = 5.0, 14.0
_KEPT = 96
_lock = threading.Lock()
_known: OrderedDict[tuple[bytes, tuple[int, ...], bool], Features] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Features:
    """Keypoints (N, 2) in pixels of the full picture, SIFT descriptors (N, 128), and the picture's size."""

    points: npt.NDArray[np.float32]
    descriptors: npt.NDArray[np.float32]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Match:
    """A reference found in a scene. `transform` (3x3, homogeneous) maps its pixels to the scene's; `mirrored` if it
    was found left-right reversed (the transform includes that). `points` (N, 2) are the agreeing scene points."""

    transform: npt.NDArray[np.float64]
    inliers: int
    score: float
    mirrored: bool
    points: npt.NDArray[np.float32]

    def place(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Reference pixels (N, 2) as scene pixels (N, 2)."""
        placed = np.c_[points, np.ones(len(points))] @ self.transform.T
        return np.asarray(placed[:, :2] / placed[:, 2:])


def take(image: Image, *, side_px: int) -> Features:
    """Features of a picture."""
    import cv2

    height, width = image.shape[:2]
    # small pictures are enlarged, up to double, since SIFT finds little in a thumbnail
    scale = min(2.0, side_px / max(height, width))
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    grey = cv2.cvtColor(cv2.resize(image, size, interpolation=interpolation), cv2.COLOR_RGB2GRAY)
    sift: Any = cv2.SIFT.create(nfeatures=1500, contrastThreshold=0.02)
    keypoints, descriptors = sift.detectAndCompute(grey, None)
    if descriptors is None or not keypoints:
        return Features(np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32), width, height)
    points = np.array([point.pt for point in keypoints], np.float32)
    points *= np.array([width / size[0], height / size[1]], np.float32)
    # root-SIFT (Arandjelovic and Zisserman 2012): compares gradient histograms by Hellinger's distance
    rooted = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-6))
    return Features(points, rooted.astype(np.float32), width, height)


def find(reference: Image, scene: Features, *, mirrored: bool = True) -> Match | None:
    """The best place of a reference picture in a scene, None if it is not there; also left-right reversed."""
    best = _find(_reference(reference, flip=False), scene, mirrored=False)
    if mirrored and (best is None or best.inliers < 3 * MIN_INLIERS):
        other = _find(_reference(reference, flip=True), scene, mirrored=True)
        if other is not None and (best is None or other.inliers > best.inliers):
            best = other
    return best


def _reference(image: Image, *, flip: bool) -> Features:
    """Features of a reference picture or its mirror image; the same pictures are asked for again and again."""
    pixels: Any = np.ascontiguousarray(image)
    key = (hashlib.blake2b(pixels, digest_size=16).digest(), image.shape, flip)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = take(np.ascontiguousarray(image[:, ::-1]) if flip else image, side_px=REFERENCE_SIDE_PX)
    with _lock:
        _known[key] = found
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return found


def colour_agreement(reference: Image, scene: Image, match: Match) -> float:
    """How alike the colours are where a reference is laid over the scene it was found in, 0 to 1.

    Features are taken from grey: a look-alike in another colour has them all. Compared is colour without brightness
    (Lab a and b) inside the hull of the agreeing features; grey references say nothing, which is 1.
    """
    import cv2

    left, top = np.floor(match.points.min(axis=0)).astype(int)
    right, bottom = np.ceil(match.points.max(axis=0)).astype(int) + 1
    left, top = max(0, int(left)), max(0, int(top))
    part = scene[top : int(bottom), left : int(right)]
    if part.size == 0 or float(np.ptp(reference.astype(np.int16), axis=2).mean()) < 6:
        return 1.0
    scale = min(1.0, 160 / max(part.shape[:2]))
    size = (max(4, round(part.shape[1] * scale)), max(4, round(part.shape[0] * scale)))
    into = np.array([[scale, 0, -left * scale], [0, scale, -top * scale], [0, 0, 1]], np.float64)
    laid = cv2.warpPerspective(reference, into @ match.transform, size, flags=cv2.INTER_AREA)
    hull = np.zeros((size[1], size[0]), np.uint8)
    spots = ((match.points - np.array([left, top])) * scale).astype(np.int32)
    cv2.fillConvexPoly(hull, cv2.convexHull(spots), 1)
    if not hull.any():
        return 1.0
    here = cv2.resize(np.ascontiguousarray(part), size, interpolation=cv2.INTER_AREA)
    chroma = [
        cv2.GaussianBlur(cv2.cvtColor(item, cv2.COLOR_RGB2LAB), (0, 0), 1.5)[..., 1:].astype(np.float32)
        for item in (here, laid)
    ]
    apart = float(np.linalg.norm(chroma[0] - chroma[1], axis=2)[hull > 0].mean())
    return float(np.exp(-max(0.0, apart - _SAME_COLOUR) / _OTHER_COLOUR))


def without(scene: Features, box: Box) -> Features:
    """The features of a scene outside a box, to look for the next of several alike."""
    x, y = scene.points[:, 0], scene.points[:, 1]
    out = (x < box.x1) | (x > box.x2) | (y < box.y1) | (y > box.y2)
    return Features(scene.points[out], scene.descriptors[out], scene.width, scene.height)


def similarity(references: Sequence[Image], crop: Image) -> float:
    """How surely a crop shows what one of the references shows, 0 to 1; 0 says only that nothing was found."""
    scene = take(crop, side_px=REFERENCE_SIDE_PX)
    found = [match.score for reference in references if (match := find(reference, scene)) is not None]
    return max(found, default=0.0)


def _find(reference: Features, scene: Features, *, mirrored: bool) -> Match | None:
    import cv2

    if len(reference.points) < 4 or len(scene.points) < 4:
        return None
    matcher: Any = cv2.BFMatcher(cv2.NORM_L2)
    pairs = [pair for pair in matcher.knnMatch(reference.descriptors, scene.descriptors, k=2) if len(pair) == 2]
    good = [first for first, second in pairs if first.distance < RATIO * second.distance]
    # several features of the reference on one of the scene are noise: the nearest one keeps it
    nearest: dict[int, Any] = {}
    for match in good:
        held = nearest.get(match.trainIdx)
        if held is None or match.distance < held.distance:
            nearest[match.trainIdx] = match
    good = [nearest[index] for index in sorted(nearest)]
    if len(good) < MIN_INLIERS:
        return None
    source = reference.points[[match.queryIdx for match in good]]
    target = scene.points[[match.trainIdx for match in good]]
    reach = max(3.0, 0.01 * max(scene.width, scene.height))
    transform, mask = cv2.estimateAffinePartial2D(
        source, target, method=cv2.RANSAC, ransacReprojThreshold=reach, maxIters=2000, confidence=0.995
    )
    if transform is None or mask is None:
        return None
    inliers = int(np.count_nonzero(mask))
    zoom = float(np.hypot(transform[0, 0], transform[1, 0]))
    if inliers < MIN_INLIERS or not 0.02 < zoom < 50:
        return None
    agree = mask.ravel() > 0
    kept = source[agree]
    # features on one spot say little of the whole: they must spread over a tenth of the reference's width
    if float(np.ptp(kept, axis=0).max()) < 0.1 * max(reference.width, reference.height):
        return None
    full = _refined(transform, source, target, kept, target[agree], reach)
    if mirrored:  # reference pixel x is at width - 1 - x of the reversed picture
        full = full @ np.array([[-1.0, 0.0, reference.width - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return Match(full, inliers, 1.0 - float(np.exp(-inliers / _SOFT_INLIERS)), mirrored, target[agree])


def _refined(
    similar: npt.NDArray[np.float64],
    source: npt.NDArray[np.float32],
    target: npt.NDArray[np.float32],
    kept: npt.NDArray[np.float32],
    placed: npt.NDArray[np.float32],
    reach: float,
) -> npt.NDArray[np.float64]:
    """The similarity as a 3x3 matrix, or with many agreeing features the affinity or homography that fits them
    better: a thing seen from another side is not merely turned and scaled."""
    import cv2

    plain = np.vstack([similar, [0.0, 0.0, 1.0]])
    if len(kept) < 2 * MIN_INLIERS:
        return plain
    affine, _ = cv2.estimateAffine2D(kept, placed, method=cv2.RANSAC, ransacReprojThreshold=reach)
    if affine is None:
        return plain
    best = np.vstack([affine, [0.0, 0.0, 1.0]])
    if len(kept) >= 4 * MIN_INLIERS:
        warp, _ = cv2.findHomography(source, target, cv2.RANSAC, reach)
        # perspective beyond a few per cent over the reference's width is a bad fit, not a view
        if warp is not None and float(np.abs(warp[2, :2]).max()) * float(source.max()) < 0.25:
            best = np.asarray(warp, np.float64)
    return np.asarray(best if _orientation(best) * _orientation(plain) > 0 else plain)


def _orientation(matrix: npt.NDArray[np.float64]) -> float:
    return float(np.linalg.det(matrix[:2, :2]))


def placed_box(match: Match, outline: npt.NDArray[np.float64], width: int, height: int) -> Box:
    """The box, clipped to the scene, of a reference's outline (N, 2) where the match puts it."""
    placed = match.place(outline)
    (x1, y1), (x2, y2) = placed.min(axis=0), placed.max(axis=0)
    return Box(float(x1), float(y1), float(x2), float(y2)).clip(width, height)

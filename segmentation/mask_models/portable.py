"""Boxes to masks on a CPU without downloads: GrabCut seeded by the box, and for persons by the person network.

GrabCut: Rother, Kolmogorov, Blake, SIGGRAPH 2004, as OpenCV has it. It is run on a crop of at most `SIDE_PX` a side,
with a fixed random seed, and again smaller from a slightly larger box: their agreement is the stability. The score
says how well the colours inside the mask differ from those around it; both are 0 to 1, neither is SAM's predicted IoU.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Box, Floats, Image, Mask, mask_iou
from engine.core.protocols import Points, Segmentation
from engine.core.schema import ModelRef
from segmentation.detectors.portable_faces import image_digest
from segmentation.mask_models.portable_people import PeopleFinder, Person, shrink
from segmentation.mask_models.portable_prior import PersonPrior
from segmentation.memo import Memo

Labels = npt.NDArray[np.uint8]
_BACK, _FORE, _MAYBE_BACK, _MAYBE_FORE = 0, 1, 2, 3  # cv2.GC_BGD, GC_FGD, GC_PR_BGD, GC_PR_FGD
_SEED = 20261130
#: Masks of the boxes that were cut last: a segmenter, and ROSE around it, ask for the same box of the same picture.
_known: Memo[Segmentation] = Memo(lambda found: found.mask.nbytes, max_bytes=48_000_000)


class PortableMasker:
    """The portable mask model. One instance may be shared by threads; it works on one image at a time."""

    name = "portable"
    VERSION: ClassVar[str] = "2"
    SIDE_PX: ClassVar[int] = 400
    CHECK_SIDE_PX: ClassVar[int] = 224
    ROUNDS: ClassVar[int] = 4
    MARGIN: ClassVar[float] = 0.35

    def __init__(self, people: PeopleFinder | None = None) -> None:
        self.people = people or PeopleFinder()
        self._lock = threading.Lock()

    def model(self) -> ModelRef:
        return ModelRef(role="mask_model", name=self.name, version=self.VERSION, weights_sha256=PersonPrior.SHA256)

    def segment(self, image: Image, boxes: Sequence[Box], *, points: Sequence[Points] = ()) -> list[Segmentation]:
        """One mask per box, in order; a box outside the image gives an empty mask with score 0. What stands at a box's
        `points` is foreground from the start."""
        height, width = image.shape[:2]
        clipped = [box.clip(width, height) for box in boxes]
        if not clipped:
            return []
        people = self.people.find(image)
        digest = image_digest(image)
        with self._lock:
            return [
                self._cut_once(image, digest, box, _owner(box, people), tuple(points[place]) if points else ())
                for place, box in enumerate(clipped)
            ]

    def _cut_once(
        self, image: Image, digest: bytes, box: Box, person: Person | None, points: tuple[tuple[float, float], ...]
    ) -> Segmentation:
        key = (self.people, digest, box, person.box if person is not None else None, points)
        return _known.get(key, lambda: self._one(image, box, person, points))

    def _one(self, image: Image, box: Box, person: Person | None, points: Points = ()) -> Segmentation:
        height, width = image.shape[:2]
        whole: Mask = np.zeros((height, width), bool)
        if box.width < 2 or box.height < 2:
            return Segmentation(whole, 0.0, 0.0)
        margin_x, margin_y = self.MARGIN * box.width, self.MARGIN * box.height
        view = Box(box.x1 - margin_x, box.y1 - margin_y, box.x2 + margin_x, box.y2 + margin_y).clip(width, height)
        left, top = int(view.x1), int(view.y1)
        crop = view.crop(image)
        cut = Box(left, top, left + crop.shape[1], top + crop.shape[0])
        here = Box(box.x1 - left, box.y1 - top, box.x2 - left, box.y2 - top)
        region = _region(person, (height, width), cut) if person is not None else None
        on = [(x - left, y - top) for x, y in points]
        main = self._cut(crop, here, region, on, side_px=self.SIDE_PX, widen=0.0)
        again = self._cut(crop, here, region, on, side_px=self.CHECK_SIDE_PX, widen=0.03)
        small, _ = shrink(crop, self.SIDE_PX)
        stability = mask_iou(main, _enlarge(again, *main.shape)) if main.any() else 0.0
        whole[top : top + crop.shape[0], left : left + crop.shape[1]] = _enlarge(main, crop.shape[0], crop.shape[1])
        whole.flags.writeable = False  # it is remembered
        return Segmentation(whole, _contrast(small, main), stability)

    def _cut(self, crop: Image, box: Box, region: Floats | None, points: Points, *, side_px: int, widen: float) -> Mask:
        """The mask at the scale of a copy of at most `side_px`; `widen` lets the box grow by that share."""
        import cv2

        image, scale = shrink(crop, side_px)
        grow_x, grow_y = widen * box.width, widen * box.height
        local = Box(
            (box.x1 - grow_x) * scale, (box.y1 - grow_y) * scale, (box.x2 + grow_x) * scale, (box.y2 + grow_y) * scale
        )
        if region is not None:
            region = cv2.resize(region, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
        labels = _seeds(image.shape[0], image.shape[1], local, region)
        _mark(labels, local, [(x * scale, y * scale) for x, y in points])
        if not ((labels == _FORE) | (labels == _MAYBE_FORE)).any():
            return np.zeros(image.shape[:2], bool)
        if not ((labels == _BACK) | (labels == _MAYBE_BACK)).any():
            return np.ones(image.shape[:2], bool)  # the box is the whole image: nothing to cut from
        cv2.setRNGSeed(_SEED)  # GrabCut starts with a k-means that draws random centres
        back, fore = np.zeros((1, 65)), np.zeros((1, 65))
        cv2.grabCut(image, labels, None, back, fore, self.ROUNDS, cv2.GC_INIT_WITH_MASK)
        found = (labels == _FORE) | (labels == _MAYBE_FORE)
        return _tidy(found, fill=region is None, at=[(x * scale, y * scale) for x, y in points])


def _owner(box: Box, people: Sequence[Person]) -> Person | None:
    """The person a box is meant for: their box overlaps it most, at least by half, and the face is in it."""
    best = max(people, key=lambda person: person.box.iou(box), default=None)
    if best is None or best.box.iou(box) < 0.5:
        return None
    return best if best.face.box.intersection(box) >= 0.5 * best.face.box.area else None


def _region(person: Person, size: tuple[int, int], view: Box) -> Floats:
    """The part of a person's probability map that lies in a view (pixels of the full image, whose size is given)."""
    height, width = size
    map_h, map_w = person.region.shape
    x1, x2 = int(view.x1 * map_w / width), max(int(view.x1 * map_w / width) + 1, round(view.x2 * map_w / width))
    y1, y2 = int(view.y1 * map_h / height), max(int(view.y1 * map_h / height) + 1, round(view.y2 * map_h / height))
    return person.region[y1:y2, x1:x2]


def _seeds(height: int, width: int, box: Box, region: Floats | None) -> Labels:
    """GrabCut's labels: outside the box is background, inside is likely the thing; a person's map says more."""
    import cv2

    labels: Labels = np.full((height, width), _BACK, np.uint8)
    x1, y1 = round(max(0.0, box.x1)), round(max(0.0, box.y1))
    x2, y2 = round(min(width, box.x2)), round(min(height, box.y2))
    labels[y1:y2, x1:x2] = _MAYBE_FORE
    if region is None:
        return labels
    inside: Mask = labels == _MAYBE_FORE
    sure = cv2.erode((region > 0.9).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    labels[inside & (region <= 0.5)] = _MAYBE_BACK
    labels[cv2.dilate((region > 0.1).astype(np.uint8), np.ones((13, 13), np.uint8)) == 0] = _BACK
    labels[inside & sure] = _FORE
    return labels


def _mark(labels: Labels, box: Box, points: Points) -> None:
    """Foreground around points: discs of a thirtieth of the box's shorter side, where they lie in the box."""
    radius = max(1.0, min(box.width, box.height) / 30)
    ys, xs = np.mgrid[: labels.shape[0], : labels.shape[1]]
    for x, y in points:
        disc = (xs + 0.5 - x) ** 2 + (ys + 0.5 - y) ** 2 <= radius**2
        labels[disc & (labels != _BACK)] = _FORE


def _tidy(mask: Mask, *, fill: bool, at: Points = ()) -> Mask:
    """The largest connected part, of those at the points if there are any; `fill` asks for its holes to be closed, as
    things seldom have any."""
    import cv2

    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    if count <= 1:
        return mask
    height, width = mask.shape
    meant = {int(labels[min(int(y), height - 1), min(int(x), width - 1)]) for x, y in at if x >= 0 and y >= 0} - {0}
    best = max(meant or range(1, count), key=lambda part: (int(stats[part, cv2.CC_STAT_AREA]), -part))
    kept = (labels == best).astype(np.uint8)
    kept = cv2.morphologyEx(kept, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    if fill:
        outlines, _ = cv2.findContours(kept, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        cv2.drawContours(kept, outlines, -1, 1, -1)
    return np.asarray(kept > 0)


def _enlarge(mask: Mask, height: int, width: int) -> Mask:
    import cv2

    if mask.shape == (height, width):
        return mask
    soft = cv2.resize(mask.astype(np.uint8) * 255, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(soft > 127)


def _contrast(image: Image, mask: Mask) -> float:
    """Hellinger's distance of the colours inside the mask to those in a ring around it, 0 to 1."""
    import cv2

    if not mask.any():
        return 0.0
    ring = cv2.dilate(mask.astype(np.uint8), np.ones((15, 15), np.uint8)).astype(bool) & ~mask
    if not ring.any():
        return 0.5
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    histograms = []
    for part in (mask, ring):
        counts = cv2.calcHist([lab], [0, 1, 2], part.astype(np.uint8), [8, 12, 12], [0, 256] * 3).ravel()
        histograms.append(counts / max(1.0, float(counts.sum())))
    overlap = float(np.sqrt(histograms[0] * histograms[1]).sum())
    return float(np.sqrt(min(1.0, max(0.0, 1.0 - overlap))))

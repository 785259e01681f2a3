"""Persons as regions: faces say how many there are and where, a person network says which pixels are people,
and a watershed from the faces shares those pixels out among them.

Used by the portable detector (for the box) and the portable mask model (for the seeds). It knows no names.
Persons whose face is not found do not exist for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Box, Floats, Image, Mask, mask_box
from segmentation.detectors.portable_faces import Face, FaceFinder, image_digest
from segmentation.mask_models.portable_prior import PersonPrior

Owners = npt.NDArray[np.int32]
#: Regions are worked out on a copy of at most so many pixels a side.
WORK_SIDE_PX = 640
_LIKELY, _UNLIKELY = 0.5, 0.08


@dataclass(frozen=True, slots=True)
class Person:
    """A person: face and box in pixels of the full image; `region` is the probability of belonging to this person,
    float32 at the working scale (full image, long side at most `WORK_SIDE_PX`)."""

    face: Face
    box: Box
    region: Floats


class PeopleFinder:
    """Finds persons; the last images' results are kept, so that detector and mask model share them."""

    KEPT: ClassVar[int] = 4

    def __init__(self, faces: FaceFinder | None = None, prior: PersonPrior | None = None) -> None:
        self.faces = faces or FaceFinder()
        self.prior = prior or PersonPrior()
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, tuple[Person, ...]] = OrderedDict()

    def find(self, image: Image) -> tuple[Person, ...]:
        """Persons of an upright RGB image, left to right."""
        digest = image_digest(image)
        with self._lock:
            if digest in self._seen:
                self._seen.move_to_end(digest)
                return self._seen[digest]
        found = self._find(image)
        with self._lock:
            self._seen[digest] = found
            while len(self._seen) > self.KEPT:
                self._seen.popitem(last=False)
        return found

    def _find(self, image: Image) -> tuple[Person, ...]:
        faces = sorted(self.faces.find(image), key=lambda face: face.box.center)
        if not faces:
            return ()
        small, scale = shrink(image, WORK_SIDE_PX)
        placed = [_scaled(face.box, scale) for face in faces]
        height, width = small.shape[:2]
        likely: Floats = np.zeros((height, width), np.float32)
        for box in placed:
            likely = np.maximum(likely, self.prior.of(small, around(box, width, height)))
        owner = _share_out(small, placed, likely)
        persons = []
        for number, (face, box) in enumerate(zip(faces, placed, strict=True), start=1):
            mine = np.where(owner == number, likely, 0).astype(np.float32)
            mine = _with_face(mine, box)
            extent = mask_box(mine > _LIKELY) or box
            full = Box(extent.x1 / scale, extent.y1 / scale, extent.x2 / scale, extent.y2 / scale)
            persons.append(Person(face, full.clip(image.shape[1], image.shape[0]), mine))
        return tuple(persons)


def shrink(image: Image, side_px: int) -> tuple[Image, float]:
    """A copy of at most `side_px` pixels a side, and its scale; small images come back as they are."""
    import cv2

    height, width = image.shape[:2]
    scale = min(1.0, side_px / max(height, width))
    if scale == 1.0:
        return np.ascontiguousarray(image), 1.0
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    resized: Image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return resized, scale


def around(face: Box, width: int, height: int) -> Box:
    """The part of an image in which a face's person is looked for: 5 faces wide, from a face above to 4 below.

    A sitting or standing person is about 7 faces high and 3 wide; the network was trained on upper bodies, so
    the crop stops at the hips.
    """
    center_x, _ = face.center
    return Box(
        center_x - 2.5 * face.width,
        face.y1 - 1.0 * face.height,
        center_x + 2.5 * face.width,
        face.y2 + 4.0 * face.height,
    ).clip(width, height)


def _scaled(box: Box, scale: float) -> Box:
    return Box(box.x1 * scale, box.y1 * scale, box.x2 * scale, box.y2 * scale)


def _share_out(image: Image, faces: list[Box], likely: Floats) -> Owners:
    """Number of the person (from 1) each pixel belongs to, 0 for none.

    Where people hang together, a watershed from faces and chests finds the line between them. It is not asked
    where people end: that the network knows better, so what it leaves to nobody goes to the nearest person.
    """
    import cv2

    owner: Owners = np.zeros(likely.shape, np.int32)
    if len(faces) == 1:
        owner[likely > _UNLIKELY] = 1
        return owner
    flooded = cv2.watershed(cv2.GaussianBlur(image, (0, 0), 1.0), _markers(faces, likely))
    nobody = len(faces) + 1
    taken = (flooded > 0) & (flooded < nobody)
    if taken.any():
        away = (~taken).astype(np.uint8)
        _, nearest = cv2.distanceTransformWithLabels(away, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
        owner_of: Owners = np.zeros(int(nearest.max()) + 1, np.int32)
        owner_of[nearest[taken]] = flooded[taken]
        flooded = np.where(taken, flooded, owner_of[nearest])
    _, parts = cv2.connectedComponents((likely > _LIKELY).astype(np.uint8), connectivity=4)
    crowd: dict[int, list[int]] = {}
    for number, face in enumerate(faces, start=1):
        crowd.setdefault(int(parts[_cell(face, likely.shape)]), []).append(number)
    owner = np.where(likely > _UNLIKELY, flooded, 0).astype(np.int32)
    for part, numbers in crowd.items():
        if part and len(numbers) == 1:
            owner[parts == part] = numbers[0]
    return owner


def _markers(faces: list[Box], likely: Floats) -> Owners:
    """Where a flood starts: faces and chests with the person's number, surely empty pixels with one more."""
    import cv2

    markers: Owners = np.zeros(likely.shape, np.int32)
    markers[likely < _UNLIKELY] = len(faces) + 1
    # small faces first: a larger face is nearer to the camera, its body lies in front
    for number, face in sorted(enumerate(faces, start=1), key=lambda pair: pair[1].area):
        seed = np.zeros(likely.shape, np.uint8)
        x, y = face.center
        chest = (int(x - 0.3 * face.width), int(y), int(x + 0.3 * face.width), int(face.y2 + 1.2 * face.height))
        cv2.rectangle(seed, chest[:2], chest[2:], 1, -1)
        markers[(seed > 0) & (likely > _LIKELY)] = number
    for number, face in enumerate(faces, start=1):  # nobody's chest covers somebody's face
        seed = np.zeros(likely.shape, np.uint8)
        cv2.ellipse(seed, (face.center, (0.7 * face.width, 0.8 * face.height), 0.0), 1, -1)
        markers[seed > 0] = number
    return markers


def _cell(face: Box, shape: tuple[int, ...]) -> tuple[int, int]:
    x, y = face.center
    return min(shape[0] - 1, int(y)), min(shape[1] - 1, int(x))


def _with_face(region: Floats, face: Box) -> Floats:
    """The part of a region that hangs together with the face; all of it if the face is not in it."""
    import cv2

    found: Mask = region > _LIKELY
    _, labels = cv2.connectedComponents(found.astype(np.uint8), connectivity=8)
    x, y = (int(value) for value in face.center)
    half_w, half_h = max(1, int(face.width / 3)), max(1, int(face.height / 3))
    inside = labels[max(0, y - half_h) : y + half_h + 1, max(0, x - half_w) : x + half_w + 1]
    counts = np.bincount(inside[inside > 0].ravel()) if (inside > 0).any() else np.zeros(0, np.int64)
    if counts.size == 0:
        return region
    kept = labels == int(counts.argmax())
    reach = cv2.dilate(kept.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    return np.where(kept | (reach & ~found), region, 0).astype(np.float32)

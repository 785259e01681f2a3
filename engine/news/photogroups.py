"""Photos of a whole window by their perceptual hashes: which files are one photo, which are nearly so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.schema import ImageRef
from engine.news.stories import clusters

#: Photos whose hashes differ in more bits than one photo's may, but in no more than this, are told as near matches:
#: a tighter crop, a bar at the foot. Photos taken at random differ in 32 of 64 bits, and in 16 once in 30,000 pairs.
NEAR_MATCH_BITS = 16
#: Hashes compared at a time with all others; 512 by 10,000 are 40 MB.
BLOCK = 512


@dataclass(frozen=True, slots=True)
class Photo:
    """What is needed of a photo to compare and replace it. `phash` is 16 hex digits, sizes are pixels."""

    sha256: str
    ext: str
    url: str
    width: int
    height: int
    phash: str


@dataclass(frozen=True, slots=True)
class PhotoGroups:
    """`best` gives for each file the largest file of its photo, `near` the photos that are nearly it with the number of
    bits that differ."""

    best: dict[str, Photo]
    near: dict[str, tuple[tuple[str, int], ...]]


def photo_of(image: ImageRef) -> Photo:
    return Photo(image.sha256, image.ext, image.url, image.width, image.height, image.phash)


def group_photos(photos: Iterable[Photo], *, bits: int) -> PhotoGroups:
    """Group photos whose hashes differ in at most `bits`; of a file met several times the first counts."""
    files: dict[str, Photo] = {}
    for photo in photos:
        files.setdefault(photo.sha256, photo)
    ordered = sorted(files.values(), key=lambda photo: photo.sha256)
    groups = clusters(len(ordered), near_pairs([photo.phash for photo in ordered], bits=bits))
    largest: dict[int, Photo] = {}
    for photo, group in zip(ordered, groups, strict=True):
        old = largest.get(group)
        if old is None or (photo.width * photo.height, old.sha256) > (old.width * old.height, photo.sha256):
            largest[group] = photo
    best = {photo.sha256: largest[group] for photo, group in zip(ordered, groups, strict=True)}
    # what is told as near are the files that stay
    kept = sorted({photo.sha256: photo for photo in best.values()}.values(), key=lambda photo: photo.sha256)
    return PhotoGroups(best, _near(kept, bits))


def _near(photos: Sequence[Photo], bits: int) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, list[tuple[str, int]]] = {}
    if bits < NEAR_MATCH_BITS:
        for a, b in near_pairs([photo.phash for photo in photos], bits=NEAR_MATCH_BITS):
            apart = (int(photos[a].phash, 16) ^ int(photos[b].phash, 16)).bit_count()
            if apart > bits:
                found.setdefault(photos[a].sha256, []).append((photos[b].url, apart))
                found.setdefault(photos[b].sha256, []).append((photos[a].url, apart))
    return {sha: tuple(sorted(told)) for sha, told in found.items()}


def near_pairs(hashes: Sequence[str], *, bits: int) -> list[tuple[int, int]]:
    """Pairs of hashes that differ in at most `bits` bits, by position."""
    values = np.array([int(value, 16) for value in hashes], dtype=np.uint64)
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        apart = np.bitwise_count(block[:, None] ^ values[None, start:])
        rows, columns = np.nonzero(apart <= bits)
        later = columns > rows
        pairs += [(start + int(a), start + int(b)) for a, b in zip(rows[later], columns[later], strict=True)]
    return pairs

"""Photos of a whole window by their perceptual hashes: which files are one photo, which are nearly so."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.schema import Article, ImageRef
from engine.news.stories import clusters

#: Photos whose hashes differ in more bits than one photo's may, but in no more than this, are told as near matches:
#: a tighter crop, a bar at the foot. Photos taken at random differ in 32 of 64 bits, and in 16 once in 30,000 pairs.
NEAR_MATCH_BITS = 16
#: Pairs of hashes compared at a time: 8 MB.
BLOCK_PAIRS = 1 << 20

Hashes = NDArray[np.uint64]


class PhotoTable:
    """What is needed of the photos of all articles to compare them, 60 bytes each: digest, hash, pixels, and where the
    rest stands (position of the article, number of the photo in it)."""

    def __init__(self) -> None:
        self._sha256 = bytearray()
        self._hashes = array("Q")
        self._pixels = array("Q")
        self._starts = array("L", [0])

    def add(self, images: Sequence[ImageRef]) -> None:
        """The photos of one more article."""
        for image in images:
            self._sha256 += bytes.fromhex(image.sha256)
            self._hashes.append(int(image.phash, 16))
            self._pixels.append(image.width * image.height)
        self._starts.append(len(self._hashes))

    def rows(self, articles: Iterable[int]) -> NDArray[np.int64]:
        """Rows of the photos of some articles, in the articles' order."""
        found = array("q")
        for index in articles:
            found.extend(range(self._starts[index], self._starts[index + 1]))
        return np.array(found, dtype=np.int64)

    def owner(self, row: int) -> tuple[int, int]:
        """(position of the article, number of the photo in it)."""
        index = bisect_right(self._starts, row) - 1
        return index, row - self._starts[index]

    def columns(self) -> tuple[NDArray[Any], Hashes, NDArray[np.int64]]:
        """Digests as 32 bytes each, hashes, and pixels per photo."""
        digests = np.frombuffer(bytes(self._sha256), dtype="V32")
        return digests, np.array(self._hashes, dtype=np.uint64), np.array(self._pixels, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PhotoGroups:
    """By the sha256 of a file: `larger` gives the largest file of its photo where that is another one, `near` the
    photos that are nearly it (address, number of bits that differ)."""

    larger: dict[str, ImageRef]
    near: dict[str, tuple[tuple[str, int], ...]]


def group_photos(
    table: PhotoTable, articles: Sequence[int], article_of: Callable[[int], Article], *, bits: int
) -> PhotoGroups:
    """Group the photos of some articles whose hashes differ in at most `bits`; of a file met several times the first
    counts."""
    digests, hashes, pixels = table.columns()
    rows = table.rows(articles)
    # by digest, and of each digest the first row
    _, first = np.unique(digests[rows], return_index=True)
    files = rows[first]
    hashes, pixels = hashes[files], pixels[files]
    groups = clusters(len(files), near_pairs(hashes, bits=bits))

    def photo(position: int) -> ImageRef:
        index, number = table.owner(int(files[position]))
        return article_of(index).images[number]

    largest = array("q", groups)
    for position, group in enumerate(groups):
        # files come by digest: of two as large the one with the lower digest stays
        if pixels[position] > pixels[largest[group]]:
            largest[group] = position
    larger = {
        digests[files[position]].tobytes().hex(): photo(largest[group])
        for position, group in enumerate(groups)
        if largest[group] != position
    }
    # what is told as near are the files that stay
    staying = np.unique(np.array([largest[group] for group in groups], dtype=np.int64))
    found: dict[int, list[tuple[str, int]]] = {}
    if bits < NEAR_MATCH_BITS:
        values = hashes[staying]
        for a, b in near_pairs(values, bits=NEAR_MATCH_BITS):
            apart = int(np.bitwise_count(values[a] ^ values[b]))
            if apart > bits:
                one, other = int(staying[a]), int(staying[b])
                found.setdefault(one, []).append((photo(other).url, apart))
                found.setdefault(other, []).append((photo(one).url, apart))
    near = {digests[files[position]].tobytes().hex(): tuple(sorted(told)) for position, told in found.items()}
    return PhotoGroups(larger, near)


def hashes_of(phashes: Iterable[str]) -> Hashes:
    """Perceptual hashes (16 hex digits each) as numbers, for comparing with many."""
    return np.array([int(phash, 16) for phash in phashes], dtype=np.uint64)


def is_near(phash: str, others: Hashes, *, bits: int) -> bool:
    """Whether a hash differs from one of many in at most `bits` bits."""
    return bool((np.bitwise_count(others ^ np.uint64(int(phash, 16))) <= bits).any())


def near_pairs(hashes: Hashes, *, bits: int) -> list[tuple[int, int]]:
    """Pairs of hashes that differ in at most `bits` bits, by position."""
    pairs: list[tuple[int, int]] = []
    step = max(1, BLOCK_PAIRS // max(1, len(hashes)))
    for start in range(0, len(hashes), step):
        block = hashes[start : start + step]
        apart = np.bitwise_count(block[:, None] ^ hashes[None, start:])
        rows, columns = np.nonzero(apart <= bits)
        later = columns > rows
        pairs += [(start + int(a), start + int(b)) for a, b in zip(rows[later], columns[later], strict=True)]
    return pairs

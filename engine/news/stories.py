"""The same story told by several publishers: MinHash finds candidates, exact word runs decide.

Two thresholds: texts that are mostly one (an agency's report on two sites) are duplicates, texts that share a good
part belong to one story and get one `story` label. Sketches of half a kilobyte are kept in a nameless file; a text is
asked for again where two sketches are near.
"""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.store.files import disk_error

RUN_WORDS = 4
#: Share of word runs in common (Jaccard) from which two texts are one; agencies' reports are cut and reworded a bit.
SAME_TEXT = 0.5
#: Share of the shorter text's runs that the longer one holds, for reports that one site cut.
SAME_PART = 0.8
SAME_STORY = 0.2
_PERMUTATIONS = 128
_SEED = 1
#: Values of a band; two sketches are compared if one of their bands is equal. With 64 bands of 2 that is missed once in
#: 1,900 pairs that have a third of their word runs in common, in 14 that have a fifth, and hardly ever from a half on.
BAND_VALUES = 2
#: Least number of equal values of two sketches: 7 of 128 stand for 5 % of word runs in common. A story cut to a fifth
#: has 16 %, and fewer than 7 are then seen once in 14,000 pairs.
LEAST_EQUAL = 7
#: Texts whose word runs are held while pairs are compared; candidates of one story lie together.
_HELD_TEXTS = 256
_BLOCK_SKETCHES = 1024

Sketch = NDArray[np.uint32]


def word_runs(text: str) -> frozenset[str]:
    """Runs of four words of a text, lower-case."""
    words = re.findall(r"\w+", text.lower())
    if len(words) <= RUN_WORDS:
        return frozenset([" ".join(words)]) if words else frozenset()
    return frozenset(" ".join(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1))


def sketch_of(text: str) -> Sketch:
    """MinHash values of a text's word runs, 128 numbers of 32 bits."""
    sketch = _empty().copy()
    sketch.update_batch([run.encode() for run in sorted(word_runs(text))])
    return np.asarray(sketch.hashvalues, dtype=np.uint32)


class Sketches:
    """The sketches of many texts, half a kilobyte each, in a nameless file: memory holds the last `_BLOCK_SKETCHES`."""

    def __init__(self, sketches: Iterable[Sketch] = ()) -> None:
        self._file = -1
        self._last = np.empty((_BLOCK_SKETCHES, _PERMUTATIONS), dtype=np.uint32)
        self._count = 0
        for sketch in sketches:
            self.add(sketch)

    def __len__(self) -> int:
        return self._count

    def add(self, sketch: Sketch) -> None:
        """One more sketch, at the next position. Raises `TerminalError` where the temporary folder takes no more."""
        self._last[self._count % _BLOCK_SKETCHES] = sketch
        self._count += 1
        if self._count % _BLOCK_SKETCHES == 0:
            self._put_away()

    def _put_away(self) -> None:
        folder = Path(tempfile.gettempdir())
        try:
            if self._file < 0:
                with tempfile.TemporaryFile(dir=folder) as opened:
                    self._file = os.dup(opened.fileno())
                weakref.finalize(self, os.close, self._file)
            block = memoryview(self._last.tobytes())
            while block:
                block = block[os.write(self._file, block) :]
        except OSError as error:
            raise disk_error(folder, error) from error

    def near(self, one: int, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some sketches have `LEAST_EQUAL` values in common with one. The share of equal values is an estimate
        of the texts' Jaccard index."""
        mine = self._row(one)
        return np.fromiter(
            (np.count_nonzero(self._row(other) == mine) >= LEAST_EQUAL for other in others.tolist()),
            dtype=np.bool_,
            count=len(others),
        )

    def columns(self, start: int, stop: int) -> NDArray[np.uint32]:
        """A copy of some columns of all sketches, (N, stop - start)."""
        found = np.empty((self._count, stop - start), dtype=np.uint32)
        held = self._count % _BLOCK_SKETCHES
        for first in range(0, self._count - held, _BLOCK_SKETCHES):
            found[first : first + _BLOCK_SKETCHES] = self._stored(first, _BLOCK_SKETCHES)[:, start:stop]
        found[self._count - held :] = self._last[:held, start:stop]
        return found

    def _row(self, position: int) -> Sketch:
        held = self._count % _BLOCK_SKETCHES
        if position >= self._count - held:
            last: Sketch = self._last[position % _BLOCK_SKETCHES]
            return last
        stored: Sketch = self._stored(position, 1)[0]
        return stored

    def _stored(self, first: int, count: int) -> NDArray[np.uint32]:
        size = _PERMUTATIONS * self._last.itemsize
        data = os.pread(self._file, count * size, first * size)
        return np.frombuffer(data, dtype=np.uint32).reshape(count, _PERMUTATIONS)


@lru_cache(maxsize=1)
def _empty() -> Any:
    """A sketch of nothing. Its permutations are drawn once: that takes longer than sketching a short text."""
    from datasketch import MinHash

    return MinHash(num_perm=_PERMUTATIONS, seed=_SEED)


def pairs_of(
    sketches: Sketches, text_of: Callable[[int], str], *, rows: Sequence[int] | None = None
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(pairs that are one text, pairs of one story), as indexes; the first list is part of the second. With `rows`
    only the sketches at these positions are compared, and indexes count in `rows`, those for `text_of` too."""
    chosen = range(len(sketches)) if rows is None else rows
    runs = lru_cache(maxsize=_HELD_TEXTS)(lambda index: _numbered(word_runs(text_of(index))))
    same: list[tuple[int, int]] = []
    story: list[tuple[int, int]] = []
    for index, other in _candidates(sketches, chosen):
        mine, theirs = runs(index), runs(other)
        shared = len(np.intersect1d(mine, theirs, assume_unique=True))
        if not shared:
            continue
        jaccard = shared / (len(mine) + len(theirs) - shared)
        part = shared / min(len(mine), len(theirs))
        if jaccard >= SAME_TEXT or (part >= SAME_PART and shared >= 30):
            same.append((index, other))
        if jaccard >= SAME_STORY or part >= SAME_PART:
            story.append((index, other))
    return same, story


def _numbered(runs: frozenset[str]) -> NDArray[np.int64]:
    """Runs as numbers of 64 bits, which are as good for comparing within a process and a tenth of the size."""
    return np.unique(np.fromiter(map(hash, runs), dtype=np.int64, count=len(runs)))


def _candidates(sketches: Sketches, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs whose sketches are equal in at least one band. Bands are gone through one at a time, since an index of all
    of them would take more memory than the sketches."""
    if len(rows) < 2:
        return []
    chosen = np.array(rows, dtype=np.int64)
    pairs: set[tuple[int, int]] = set()
    for start in range(0, _PERMUTATIONS, BAND_VALUES):
        part = sketches.columns(start, start + BAND_VALUES)[chosen]
        order = np.lexsort(part.T)
        part = part[order]
        bounds = np.flatnonzero(np.r_[True, (part[1:] != part[:-1]).any(axis=1), True])
        for bucket in np.flatnonzero(np.diff(bounds) > 1):
            members = np.sort(order[bounds[bucket] : bounds[bucket + 1]])
            for position, one in enumerate(members[:-1].tolist(), 1):
                # a band may be equal by chance: among many texts most such pairs are, and holding them, or reading
                # their texts, would cost more than all sketches
                others = members[position:]
                near = others[sketches.near(rows[one], chosen[others])]
                pairs.update((one, other) for other in near.tolist())
    return sorted(pairs)


def clusters(count: int, pairs: Sequence[tuple[int, int]]) -> Sequence[int]:
    """For each index the smallest index of its cluster, clusters being what the pairs connect."""
    root = array("q", range(count))

    def top(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    for a, b in pairs:
        x, y = top(a), top(b)
        if x != y:
            root[max(x, y)] = min(x, y)
    return array("q", (top(index) for index in range(count)))

"""The same story told by several publishers: MinHash finds candidates, exact word runs decide.

Two thresholds: texts that are mostly one (an agency's report on two sites) are duplicates, texts that share a good
part belong to one story and get one `story` label. Only sketches of half a kilobyte are held; a text is asked for
again where two sketches are near.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RUN_WORDS = 4
#: Share of word runs in common (Jaccard) from which two texts are one; agencies' reports are cut and reworded a bit.
SAME_TEXT = 0.5
#: Share of the shorter text's runs that the longer one holds, for reports that one site cut.
SAME_PART = 0.8
SAME_STORY = 0.2
_PERMUTATIONS = 128
_SEED = 1
#: Least number of equal values of two sketches: 7 of 128 stand for 5 % of word runs in common. A story cut to a fifth
#: has 16 %, and fewer than 7 are then seen once in 14,000 pairs.
LEAST_EQUAL = 7
#: Texts whose word runs are held while pairs are compared; candidates of one story lie together.
_HELD_TEXTS = 256

Sketch = NDArray[np.uint32]


def word_runs(text: str) -> frozenset[str]:
    """Runs of four words of a text, lower-case."""
    words = re.findall(r"\w+", text.lower())
    if len(words) <= RUN_WORDS:
        return frozenset([" ".join(words)]) if words else frozenset()
    return frozenset(" ".join(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1))


def sketch_of(text: str) -> Sketch:
    """MinHash values of a text's word runs, 128 numbers of 32 bits."""
    from datasketch import MinHash

    sketch = MinHash(num_perm=_PERMUTATIONS, seed=_SEED)
    sketch.update_batch([run.encode() for run in sorted(word_runs(text))])
    return np.asarray(sketch.hashvalues, dtype=np.uint32)


def pairs_of(
    sketches: Sequence[Sketch], text_of: Callable[[int], str]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(pairs that are one text, pairs of one story), as indexes; the first list is part of the second."""
    runs = lru_cache(maxsize=_HELD_TEXTS)(lambda index: word_runs(text_of(index)))
    same: list[tuple[int, int]] = []
    story: list[tuple[int, int]] = []
    for index, other in _candidates(sketches):
        mine, theirs = runs(index), runs(other)
        shared = len(mine & theirs)
        if not shared:
            continue
        jaccard = shared / len(mine | theirs)
        part = shared / min(len(mine), len(theirs))
        if jaccard >= SAME_TEXT or (part >= SAME_PART and shared >= 30):
            same.append((index, other))
        if jaccard >= SAME_STORY or part >= SAME_PART:
            story.append((index, other))
    return same, story


def _candidates(sketches: Sequence[Sketch]) -> list[tuple[int, int]]:
    """Pairs whose sketches are equal in at least one band. Bands are chosen by datasketch for the lower threshold, and
    gone through one at a time, since an index of all of them would take more memory than the sketches."""
    from datasketch import MinHashLSH

    if len(sketches) < 2:
        return []
    shape = MinHashLSH(threshold=SAME_STORY, num_perm=_PERMUTATIONS)
    values = np.stack(sketches)
    pairs: set[tuple[int, int]] = set()
    for band in range(shape.b):
        part = values[:, band * shape.r : (band + 1) * shape.r]
        buckets: dict[bytes, list[int]] = {}
        for index, row in enumerate(part):
            buckets.setdefault(row.tobytes(), []).append(index)
        for bucket in buckets.values():
            pairs.update((a, b) for position, a in enumerate(bucket) for b in bucket[position + 1 :])
    # a band may be equal by chance: among many short texts most candidates are, and each costs two texts to be read
    return [(a, b) for a, b in sorted(pairs) if np.count_nonzero(values[a] == values[b]) >= LEAST_EQUAL]


def clusters(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """For each index the smallest index of its cluster, clusters being what the pairs connect."""
    root = list(range(count))

    def top(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    for a, b in pairs:
        x, y = top(a), top(b)
        if x != y:
            root[max(x, y)] = min(x, y)
    return [top(index) for index in range(count)]

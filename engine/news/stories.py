"""The same story told by several publishers: MinHash finds candidates, exact word runs decide.

Two thresholds: texts that are mostly one (an agency's report on two sites) are duplicates, texts that share a good
part belong to one story and get one `story` label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.core.schema import Article

RUN_WORDS = 4
#: Share of word runs in common (Jaccard) from which two texts are one; agencies' reports are cut and reworded a bit.
SAME_TEXT = 0.5
#: Share of the shorter text's runs that the longer one holds, for reports that one site cut.
SAME_PART = 0.8
SAME_STORY = 0.2
_PERMUTATIONS = 128
_SEED = 1


def word_runs(text: str) -> frozenset[str]:
    """Runs of four words of a text, lower-case."""
    words = re.findall(r"\w+", text.lower())
    if len(words) <= RUN_WORDS:
        return frozenset([" ".join(words)]) if words else frozenset()
    return frozenset(" ".join(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1))


def pairs_of(articles: Sequence[Article]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(pairs that are one text, pairs of one story), as indexes; the first list is part of the second."""
    from datasketch import MinHash, MinHashLSH

    lsh = MinHashLSH(threshold=SAME_STORY, num_perm=_PERMUTATIONS)
    hashes = []
    for index, article in enumerate(articles):
        sketch = MinHash(num_perm=_PERMUTATIONS, seed=_SEED)
        sketch.update_batch([run.encode() for run in sorted(word_runs(article.text))])
        lsh.insert(index, sketch, check_duplication=False)
        hashes.append(sketch)
    same: list[tuple[int, int]] = []
    story: list[tuple[int, int]] = []
    for index, sketch in enumerate(hashes):
        candidates = sorted(other for other in lsh.query(sketch) if other > index)
        mine = word_runs(articles[index].text) if candidates else frozenset()
        for other in candidates:
            theirs = word_runs(articles[other].text)
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

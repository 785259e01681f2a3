"""What a snapshot shares with earlier ones: pictures, near-identical pictures, articles, their texts, and answers.

A rolling benchmark is worth its name only while its rows are new, so the overlap is counted and published. A window is
decided from what lies in it alone; a story that the window before told already shows here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import TerminalError
from engine.core.schema import Overlap
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import DATA, PROVENANCE

#: Perceptual hashes (64 bits) that differ in at most so many bits are one photo; the collect stage's default.
NEAR_BITS = 6


@dataclass(slots=True)
class Traces:
    """What one snapshot can share with another. `phashes` maps a picture's sha256 to its perceptual hash."""

    phashes: dict[str, str] = field(default_factory=dict)
    articles: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)

    def add(self, provenance: dict[str, Any], answer: str) -> None:
        self.phashes.update(zip(provenance["image_sha256"], provenance["image_phashes"], strict=True))
        self.articles.add(provenance["canonical_url"])
        self.answers.add(answer.casefold())


def overlap(
    ours: Traces, name: str, theirs: Traces, *, retold: Set[str] | None = None, near_bits: int = NEAR_BITS
) -> Overlap:
    """How much of ours was in an earlier snapshot called `name`. `retold` are addresses of articles whose text repeats
    one of theirs, None if that is not known."""
    same = ours.phashes.keys() & theirs.phashes.keys()
    rest = [value for digest, value in sorted(ours.phashes.items()) if digest not in same and value]
    known = [value for value in theirs.phashes.values() if value]
    near = 0
    if rest and known:
        there = np.array([int(value, 16) for value in known], dtype=np.uint64)
        for value in rest:
            differing = np.bitwise_count(there ^ np.uint64(int(value, 16)))
            near += bool((differing <= near_bits).any())
    return Overlap(
        snapshot=name,
        images=len(same),
        near_images=near,
        articles=len(ours.articles & theirs.articles),
        stories=None if retold is None else len(ours.articles & retold),
        answers=len(ours.answers & theirs.answers),
    )


def overlaps(
    ours: Traces, earlier: Sequence[Path], *, retold: Mapping[str, Set[str]] | None = None
) -> tuple[Overlap, ...]:
    """Overlap with each earlier snapshot folder, by name; `retold` by name as well, for those of which it is known.
    Raises `TerminalError` for a folder that cannot be read."""
    found = []
    for folder in earlier:
        name = read_manifest(folder).name
        found.append(overlap(ours, name, read_traces(folder), retold=(retold or {}).get(name)))
    return tuple(sorted(found, key=lambda item: item.snapshot))


def read_traces(folder: Path) -> Traces:
    """The traces of a snapshot folder, from its Parquet files."""
    import pyarrow.parquet as pq

    traces = Traces()
    try:
        answers: dict[str, str] = {}
        for path in sorted((folder / DATA).glob("*.parquet")):
            table = pq.read_table(path, columns=["id", "answer"])
            answers.update(zip(table["id"].to_pylist(), table["answer"].to_pylist(), strict=True))
        columns = ["id", "canonical_url", "image_sha256", "image_phashes"]
        for path in sorted((folder / PROVENANCE).glob("*.parquet")):
            for row in pq.read_table(path, columns=columns).to_pylist():
                traces.add(row, answers.get(row["id"], ""))
    except (OSError, ValueError, KeyError) as error:
        raise TerminalError(f"the earlier snapshot {folder} cannot be compared with: {error}") from error
    return traces

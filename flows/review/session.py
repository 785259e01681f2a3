"""One reviewer's session over the drawn rows: where they are, what they said, what they take back.

Every word is on the disk before it counts, so closing the page, the browser or the machine loses nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args

from engine.core.errors import ConfigError
from engine.core.schema import SnapshotManifest
from engine.snapshot.plain_text import odd_character
from engine.snapshot.verdicts import Kind, Verdict, append, read, standing
from flows.review.rows import Shown

LONGEST_TEXT = 500


@dataclass
class Session:
    """`path` is the reviewer's file; other revisions' verdicts in it are left alone."""

    manifest: SnapshotManifest
    rows: Sequence[Shown]
    path: Path
    reviewer: str
    _said: dict[str, Verdict] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _index: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._said = standing(v for v in read(self.path) if v.digest == self.manifest.digest)
        self._index = {row.id: number for number, row in enumerate(self.rows)}

    def state(self, *, at: int | None = None) -> dict[str, Any]:
        """Progress, and the row to show: `at`, else the first one without a word."""
        total = Counter(row.stratum for row in self.rows)
        done = Counter(row.stratum for row in self.rows if row.id in self._said)
        return {
            "snapshot": self.manifest.name,
            "revision": self.manifest.revision,
            "reviewer": self.reviewer,
            "count": len(self.rows),
            "random": [done["random"], total["random"]],
            "lowest_margin": [done["lowest_margin"], total["lowest_margin"]],
            "wrong": sum(v.verdict not in ("right", "skip") for v in self._said.values()),
            "at": self.next_open() if at is None else max(0, min(at, len(self.rows) - 1)),
        }

    def next_open(self, after: int = -1) -> int:
        """Number of the first row after `after` without a word, from the start if there is none; the last if all have
        one."""
        order: list[int] = [*range(after + 1, len(self.rows)), *range(after + 1)]
        for number in order:
            if self.rows[number].id not in self._said:
                return number
        return len(self.rows) - 1

    def row(self, number: int) -> dict[str, Any]:
        """What the page shows of a row, with this reviewer's word on it."""
        shown = self.rows[number]
        said = self._said.get(shown.id)
        return {
            **shown.told,
            "number": number,
            "stratum": shown.stratum,
            "said": said.verdict if said else None,
            "said_answer": said.answer if said else None,
            "pictures": [path is not None for path in shown.pictures],
        }

    def say(self, sample_id: object, verdict: object, *, answer: object = None, comment: object = "") -> int:
        """Write a word down; returns the number of the row to show next. Raises `ConfigError` for anything odd."""
        number = self._index.get(sample_id) if isinstance(sample_id, str) else None
        if number is None:
            raise ConfigError("the row is not one of this review")
        if verdict not in get_args(Kind) or verdict == "undo":
            raise ConfigError(
                "the verdict is none of right, wrong_answer, wrong_entity, bad_mask, private_person, skip"
            )
        with self._lock:
            self._write(
                self.rows[number],
                cast("Kind", verdict),
                answer=_text(answer) or None,
                comment=_text(comment, lines=True),
            )
        return self.next_open(number)

    def undo(self) -> int | None:
        """Take back the latest word that stands; the number of its row, None if there is none."""
        with self._lock:
            if not self._said:
                return None
            last = next(reversed(self._said))
            number = self._index.get(last)
            if number is None:
                return None
            self._write(self.rows[number], "undo")
        return number

    def _write(self, row: Shown, kind: Kind, *, answer: str | None = None, comment: str = "") -> None:
        verdict = Verdict(
            snapshot=self.manifest.name,
            revision=self.manifest.revision,
            digest=self.manifest.digest,
            rows=self.manifest.rows,
            sample_id=row.id,
            stratum=row.stratum,
            verdict=kind,
            reviewer=self.reviewer,
            masks=row.masks,
            answer=answer,
            comment=comment,
            at=datetime.now(UTC).replace(microsecond=0),
        )
        append(self.path, verdict)
        self._said.pop(row.id, None)
        if kind != "undo":
            self._said[row.id] = verdict


def _text(value: object, *, lines: bool = False) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ConfigError(f"a text is longer than {LONGEST_TEXT} characters, or no text")
    # lines in a comment are joined; an answer is one line
    clean = " ".join(value.split("\n")) if lines else value
    if odd := odd_character(clean):
        raise ConfigError(f"a text holds {odd}, which cannot be seen: write it without")
    return " ".join(clean.split())

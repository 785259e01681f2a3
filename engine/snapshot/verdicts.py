"""What people said of rows: verdicts in one small file per reviewer, and the error that follows from them.

`<home>/reviews/<snapshot>/<reviewer>.jsonl` is only ever appended to, a verdict per line, synced to the disk before
it counts: an interrupted review loses nothing, and files of several reviewers lie side by side. The error is
estimated from the rows that were drawn at random alone; rows of the lowest margins are looked at apart.

A row is wrong where at least half of those who judged it say so; skipped rows are in no figure. Light on purpose:
`nest status` reads this.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from engine.core.errors import ConfigError
from engine.core.schema import Record
from engine.core.store.files import disk_error
from engine.snapshot.proportion import agreement, interval

Kind = Literal["right", "wrong_answer", "wrong_entity", "bad_mask", "private_person", "skip", "undo"]
Stratum = Literal["random", "lowest_margin"]
WRONG: tuple[Kind, ...] = ("private_person", "wrong_answer", "wrong_entity", "bad_mask")
REVIEWS = "reviews"
#: Label of the card's line that is true once the review's corrections are made.
AFTERWARDS = "What became of it"
_NAME = re.compile(r"[\w.-]{1,40}")


class Verdict(Record):
    """One line: what `reviewer` says of a row of a snapshot revision. "undo" takes back their last word on it.

    `digest` is of the snapshot's `snapshot.json`, `masks` of the row's masks (see `reviewed.masks_digest`), so that a
    later revision knows whether the verdict is about what it holds. `answer` is the right name, if they know it.
    """

    snapshot: str
    revision: str
    digest: str
    rows: int
    sample_id: str
    stratum: Stratum
    verdict: Kind
    reviewer: str
    masks: str = ""
    answer: str | None = None
    comment: str = ""
    at: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows of one stratum: judged, wrong, how the wrong ones are wrong, and those that everybody skipped."""

    judged: int = 0
    wrong: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0

    @property
    def share(self) -> float | None:
        return self.wrong / self.judged if self.judged else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The 95 % interval of the share, see `proportion.interval`."""
        return interval(self.wrong, self.judged) if self.judged else None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The review of one revision: what was found, by whom, and how far they agree. `rows` is the revision's size;
    `same` and `kappa` are over `shared` pairs of words (right or wrong) on one row."""

    snapshot: str
    revision: str
    rows: int
    random: Tally
    margins: Tally
    reviewers: tuple[str, ...]
    shared: int
    same: float | None
    kappa: float | None
    last: datetime | None = None

    def sentence(self) -> str:
        """The error people found, in one line."""
        found = self.random
        if not found.judged:
            return "not reviewed"
        if found.judged >= self.rows:
            return f"{found.wrong} of {found.judged} rows were wrong; every row was looked at"
        assert found.bounds is not None
        low, high = (100 * bound for bound in found.bounds)
        told = f"{found.wrong} of {found.judged} rows drawn at random were wrong: "
        if not found.wrong:
            return told + f"at most {high:.1f} % (95 % bound)"
        return told + f"{100 * found.wrong / found.judged:.1f} % (95 % interval {low:.1f} to {high:.1f} %)"

    def measured(self) -> dict[str, str]:
        """The lines of the card; the labels stay, so that a later review takes an earlier one's place."""
        lines = {"Error people found": self.sentence()}
        if not self.random.judged:
            return {}
        how = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(self.random.kinds.items()))
        lines["What was wrong"] = how or "nothing"
        lines["Drawn from"] = (
            f"{self.revision} ({self.rows} rows), in an order that its digest gives; {self.random.skipped} skipped"
        )
        lines[AFTERWARDS] = (
            "what was found wrong is corrected or left out here; rows that nobody looked at are as they were"
        )
        if self.margins.judged:
            lines["Rows of the lowest margins"] = (
                f"{self.margins.wrong} of {self.margins.judged} were wrong (looked at apart, in no estimate)"
            )
        lines["Reviewers"] = str(len(self.reviewers)) + self._agreement()
        return lines

    def _agreement(self) -> str:
        if not self.shared or self.same is None:
            return "; no row was judged twice"
        kappa = "undefined, since only one word was used" if self.kappa is None else f"{self.kappa:.2f}"
        return (
            f"; equal words (right or wrong) in {100 * self.same:.0f} % of {self.shared} pairs, Cohen's kappa {kappa}"
        )


def folder_of(home: Path, snapshot: str) -> Path:
    """Where the verdicts on a snapshot lie."""
    return home / REVIEWS / snapshot


def file_of(home: Path, snapshot: str, reviewer: str) -> Path:
    """A reviewer's file. Raises `ConfigError` for a name that is no file name."""
    if not _NAME.fullmatch(reviewer) or reviewer.startswith("."):
        raise ConfigError(f"'{reviewer}' is not a reviewer's name: use letters, digits, dots, '-' and '_', at most 40")
    return folder_of(home, snapshot) / f"{reviewer}.jsonl"


def append(path: Path, verdict: Verdict) -> None:
    """Add a verdict and sync it to the disk. Raises `TerminalError` where the disk says no."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as handle:
            # a line that a crash cut short must not swallow this one
            torn = handle.tell() and not _ends_well(path)
            handle.write((b"\n" if torn else b"") + verdict.line().encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise disk_error(path, error) from error


def _ends_well(path: Path) -> bool:
    with path.open("rb") as handle:
        handle.seek(-1, os.SEEK_END)
        return handle.read(1) == b"\n"


def read(path: Path) -> Iterator[Verdict]:
    """Verdicts of a file in order. A torn last line counts as absent; raises `ConfigError` for any other bad line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield Verdict.read(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            if _is_torn(line):
                continue
            told = str(error).splitlines()[0]
            raise ConfigError(f"{path}, line {number}: not a verdict of 'nest review': {told}") from error


def _is_torn(line: bytes) -> bool:
    """Whether a line was cut short by a crash: it begins as ours do and never closes."""
    return line.startswith(b"{") and not line.rstrip().endswith(b"}")


def standing(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """A reviewer's words that stand, by row, the latest given last."""
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        found.pop(verdict.sample_id, None)
        if verdict.verdict != "undo":
            found[verdict.sample_id] = verdict
    return found


def all_of(home: Path, snapshot: str) -> dict[str, list[Verdict]]:
    """All verdicts on a snapshot, by reviewer. Raises `ConfigError` for a file that is none of ours."""
    return {path.stem: list(read(path)) for path in sorted(folder_of(home, snapshot).glob("*.jsonl"))}


def by_row(by_reviewer: Mapping[str, Sequence[Verdict]], digest: str) -> dict[str, list[Verdict]]:
    """Standing words on one revision, by row; skips among them."""
    rows: dict[str, list[Verdict]] = {}
    for name in sorted(by_reviewer):
        for row, verdict in standing(v for v in by_reviewer[name] if v.digest == digest).items():
            rows.setdefault(row, []).append(verdict)
    return rows


def decided(verdicts: Sequence[Verdict]) -> Kind:
    """What a row is after everybody's word: wrong where at least half say so, in the way that most say; "skip" where
    nobody judged. Of equally many ways the graver counts, in the order of `WRONG`."""
    judged = [verdict for verdict in verdicts if verdict.verdict != "skip"]
    wrong = Counter(verdict.verdict for verdict in judged if verdict.verdict in WRONG)
    if not judged:
        return "skip"
    if 2 * wrong.total() < len(judged):
        return "right"
    return max(WRONG, key=lambda kind: (wrong[kind], -WRONG.index(kind)))


def latest_digest(by_reviewer: Mapping[str, Sequence[Verdict]]) -> str:
    """Digest of the latest revision that has standing verdicts on rows drawn at random, "" if there is none."""
    found = [
        (_number(verdict.revision), index, verdict.digest)
        for verdicts in by_reviewer.values()
        for index, verdict in enumerate(verdicts)
        if verdict.stratum == "random" and verdict.verdict != "undo"
    ]
    return max(found)[2] if found else ""


def summarise(by_reviewer: Mapping[str, Sequence[Verdict]], *, digest: str = "") -> Reviewed | None:
    """The review of a revision, by default of the latest that was reviewed; None if nobody judged a row."""
    wanted = digest or latest_digest(by_reviewer)
    rows = by_row(by_reviewer, wanted) if wanted else {}
    if not rows:
        return None
    any_one = next(iter(rows.values()))[0]
    words: dict[str, dict[str, str]] = {}
    for name, verdicts in rows.items():
        for verdict in verdicts:
            if verdict.verdict != "skip":
                words.setdefault(verdict.reviewer, {})[name] = "right" if verdict.verdict == "right" else "wrong"
    shared, same, kappa = agreement(words)
    times = [verdict.at for verdicts in rows.values() for verdict in verdicts if verdict.at]
    return Reviewed(
        snapshot=any_one.snapshot,
        revision=any_one.revision,
        rows=any_one.rows,
        random=_tally(rows, "random"),
        margins=_tally(rows, "lowest_margin"),
        reviewers=tuple(sorted(words)),
        shared=shared,
        same=same,
        kappa=kappa,
        last=max(times, default=None),
    )


def _tally(rows: Mapping[str, Sequence[Verdict]], stratum: Stratum) -> Tally:
    found = Counter(decided(verdicts) for verdicts in rows.values() if verdicts[0].stratum == stratum)
    wrong: dict[str, int] = {kind: found[kind] for kind in WRONG if found[kind]}
    return Tally(found["right"] + sum(wrong.values()), sum(wrong.values()), wrong, found["skip"])


def _number(revision: str) -> int:
    digits = revision.removeprefix("r")
    return int(digits) if digits.isdecimal() else 0

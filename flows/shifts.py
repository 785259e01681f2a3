"""What changing the pipeline did to the scores: the records that `nest compare` keeps and the leaderboard reads."""

from __future__ import annotations

import json
from pathlib import Path

from engine.core.schema import Estimate, Record, Value

#: Folder of a home with one file per comparison.
SHIFTS = "shifts"


class ScoreShift(Value):
    """A segmenter's gIoU under both, and the difference of the second to the first with a 95 % interval that takes the
    two as independent (which is too wide where rows are shared, and never too narrow)."""

    segmenter: str
    first: Estimate
    second: Estimate
    difference: Estimate


class Shift(Record):
    """What a comparison found; the leaderboard reads `sentence` and `window`."""

    window: str
    first: str
    second: str
    changes: tuple[str, ...]
    yields: dict[str, tuple[int, int]]
    agreement: dict[str, float | int | None]
    scores: tuple[ScoreShift, ...] = ()

    def sentence(self) -> str:
        """The shift in one line."""
        what = "; ".join(self.changes[:3]) + (f" and {len(self.changes) - 3} more" if len(self.changes) > 3 else "")
        told = [f"{one.segmenter} {points(one.difference)}" for one in self.scores if one.difference.value is not None]
        return f"{self.window}: {what or 'nothing changed'}; shift of gIoU in points: {', '.join(told) or 'not scored'}"


def read_shifts(home: Path) -> list[Shift]:
    """All shifts that were kept, by window; files that cannot be read are left out."""
    found = []
    for path in sorted((home / SHIFTS).glob("*.json")):
        try:
            found.append(Shift.read(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError):
            continue
    return found


def points(found: Estimate) -> str:
    """A difference in points with its interval."""
    assert found.value is not None
    told = f"{100 * found.value:+.1f}"
    return (
        told
        if found.low is None or found.high is None
        else f"{told} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    )

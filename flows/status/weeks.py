"""What the store knows of each window, read as plain JSON: quick for years of weeks, and nothing heavy is imported.

Keys are not computed here: a stage counts as done if it was finished under any configuration. Whether it is what the
present configuration gives is what `nest status --window W` says.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from engine.core.pilots import pilot_name, split_pilot

#: Columns of the funnel: title, step of the funnel, and which of its counts.
COLUMNS = (
    ("links", "find", "found"),
    ("articles", "collect", "kept"),
    ("images", "images", "kept"),
    ("questions", "ask", "kept"),
    ("masks", "annotate", "kept"),
    ("rows", "rows", "kept"),
)
STAGES = ("collect", "ask", "annotate", "snapshot", "push", "score")
#: Windows before this one that its counts are held against.
MEDIAN_OF = 4
_LABEL = re.compile(r"\d{6}_\d{6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Week:
    """One window: its snapshot (`{}` without one), its counts by column, its losses by code, and what is done.

    `pilot` is the limit of a pilot if nothing but a pilot was made. Counts are None where a stage is not done."""

    label: str
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int | None] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    done: frozenset[str] = frozenset()
    pilot: str = ""

    @property
    def name(self) -> str:
        """Name of the window's snapshot."""
        return f"NEST_{self.label}{self.pilot}"

    @property
    def rows(self) -> int | None:
        return self.counts.get("rows")


def read_weeks(home: Path) -> list[Week]:
    """All windows of a home, oldest first."""
    labels = {path.name for path in _folders(home / "windows") if _LABEL.fullmatch(path.name)}
    labels |= {
        path.name.removeprefix("NEST_")
        for path in _folders(home / "snapshots")
        if _LABEL.fullmatch(path.name.removeprefix("NEST_"))
    }
    return [_week(home, label) for label in sorted(labels)]


def pilots(home: Path, label: str) -> list[str]:
    """What follows the window in the names of its pilots' snapshots, `.pilot20` and so on, the largest last."""
    found = (split_pilot(path.parent.name) for path in home.glob(f"snapshots/NEST_{label}.pilot*/snapshot.json"))
    limits = sorted(limit for name, limit in found if name == f"NEST_{label}" and limit is not None)
    return [pilot_name("", limit) for limit in limits]


def medians(weeks: list[Week], place: int) -> dict[str, float | None]:
    """Medians by column over the windows with a whole snapshot that come before one; None without any."""
    before = [week for week in weeks[:place] if week.snapshot and not week.pilot][-MEDIAN_OF:]
    found: dict[str, float | None] = {}
    for title, _, _ in COLUMNS:
        values = [count for week in before if (count := week.counts.get(title)) is not None]
        found[title] = float(median(values)) if values else None
    return found


def stage_folder(home: Path, week: Week, stage: str) -> Path | None:
    """The finished folder of a stage that the window's snapshot was made from, as far as its counts tell; else the
    one that was finished last."""
    wanted = next((step for step in week.snapshot.get("funnel", ()) if step.get("stage") == stage), None)
    found = [(path, told) for path, told in _manifests(home / "windows" / week.label / stage)]
    for path, told in found:
        if wanted is not None and told.get("funnel") == wanted:
            return path
    return max((path for path, _ in found), key=_finished_at, default=None)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, {} if there is none or it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file of lines; none if it cannot be opened, lines that are none are passed over."""
    try:
        handle = path.open(encoding="utf-8")
    except OSError:
        return
    with handle:
        for line in handle:
            try:
                found = json.loads(line)
            except ValueError:
                continue  # a line that a full disk cut
            if isinstance(found, dict):
                yield found


def _week(home: Path, label: str) -> Week:
    window = home / "windows" / label
    pilot = ""
    snapshot = read_json(home / "snapshots" / f"NEST_{label}" / "snapshot.json")
    if not snapshot:
        for name in pilots(home, label):
            snapshot, pilot = read_json(home / "snapshots" / f"NEST_{label}{name}" / "snapshot.json"), name
    done = {stage for stage in ("collect", "ask", "annotate", "push") if _any_holds(window / stage, "manifest.json")}
    if snapshot:
        done.add("snapshot")
    if _any_holds(home / "reports" / f"NEST_{label}{pilot}", "report.json"):
        done.add("score")
    steps = list(snapshot.get("funnel", ()))
    if not steps:
        for stage in ("collect", "ask", "annotate"):
            latest = max(_manifests(window / stage), key=lambda pair: _finished_at(pair[0]), default=None)
            if latest is not None:
                steps.append(latest[1].get("funnel", {}))
    by_stage = {step.get("stage"): step for step in steps}
    counts = {title: _count(by_stage.get(step, {}).get(which)) for title, step, which in COLUMNS}
    counts["rows"] = _count(snapshot.get("rows")) if snapshot else None
    lost: Counter[str] = Counter()
    for step in steps:
        if not str(step.get("stage")).startswith("amend"):
            lost.update({str(code): int(count) for code, count in step.get("rejected", {}).items()})
    return Week(label, snapshot, counts, lost, frozenset(done), pilot)


def _any_holds(folder: Path, name: str) -> bool:
    """Whether a folder in this one holds a file of that name that is not empty; it is not opened."""
    try:
        return any(_size(entry / name) for entry in folder.iterdir())
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _folders(path: Path) -> Iterator[Path]:
    return (found for found in path.glob("*") if found.is_dir())


def _manifests(stage: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(stage.glob("*/manifest.json")):
        if told := read_json(path):
            yield path.parent, told


def _finished_at(folder: Path) -> str:
    return str(read_json(folder / "run.json").get("finished_at", ""))

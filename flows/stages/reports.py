"""Score reports that are stored: which one speaks for a snapshot, and what it says, as text and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.core.errors import NestError
from engine.core.schema import ScoreReport
from engine.core.store import Home
from flows.ranking import rank
from flows.stages import snapshot
from flows.stages.score import Task, place


def read_report(where: Path | None) -> ScoreReport | None:
    """The report in a folder, None if there is none."""
    if where is None or not (where / "report.json").is_file():
        return None
    return ScoreReport.read_json((where / "report.json").read_bytes())


def stored_report(task: Task) -> Path | None:
    """Where a report of this data lies: that of the configured segmenters, else the one that ranks first.

    Reading needs no weights, so the configured one is looked for only as far as the configuration can be fingerprinted.
    """
    try:
        there = place(task)
    except NestError:
        there = None
    if there is not None and read_report(there) is not None:
        return there
    folders = sorted((task.home.root / "reports" / task.name).glob("*"))
    found = [(folder, told) for folder in folders if (told := read_report(folder)) is not None]
    benchmark = task.open()
    present = [(folder, told) for folder, told in found if told.digest == benchmark.digest]
    return max(present, key=lambda pair: (*rank(left_out(pair[1]).values()), pair[0].name))[0] if present else None


def left_out(report: ScoreReport) -> dict[str, tuple[int, int]]:
    """Per segmenter the pairs without a prediction, and all of them."""
    rows = (row for row in report.rows if row.kind == "segmenter" and not row.split)
    return {row.segmenter: (row.missing, row.units) for row in rows if row.truth == report.truths[0].name}


def table(where: Path | None) -> str:
    """The score tables in plain text and what the modules took, "" if there is no report."""
    from inference.report.costs import costs_table, read_costs
    from inference.report.text import plain_table, terminal

    found = read_report(where)
    if found is None or where is None:
        return ""
    if not (costs := read_costs(where)):
        return terminal(found)
    spent = costs_table(costs)
    return f"{spent.title}\n\n{plain_table(spent)}\n\n{terminal(found)}"


def figures(where: Path | None) -> list[dict[str, Any]]:
    """The overall rows as plain values."""
    found = read_report(where)
    return [row.model_dump(mode="json") for row in found.rows if not row.split] if found else []


def costs(where: Path | None) -> list[dict[str, Any]]:
    """What the modules took, as plain values."""
    from inference.report.costs import read_costs

    return [asdict(cost) for cost in read_costs(where)] if where is not None else []


def latest_reports(home: Home) -> list[ScoreReport]:
    """One report per snapshot of the home, of those of its present revision the one that ranks first; pilots and other
    parts are left out."""
    found = []
    for folder in sorted((home.root / "reports").glob("NEST_*")):
        reports = [told for path in sorted(folder.glob("*")) if (told := read_report(path)) is not None]
        if "." in folder.name or not reports:
            continue
        built = snapshot.manifest(home.snapshot(folder.name))
        present = [told for told in reports if built is None or told.revision == built.revision] or reports
        found.append(max(present, key=lambda told: (*rank(left_out(told).values()), told.digest)))
    return found

"""What a finished window shows: the funnel, the score table and where things lie. Reading only."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.core.schema import FunnelStep
from flows import console
from flows.commands.common import next_step, print_json
from flows.hints import hints
from flows.pilot import whole_week
from flows.run import Run
from flows.stages import collect, push, reports, score, snapshot


def show_result(run: Run, *, as_json: bool = False, hint: bool = True) -> None:
    """Funnel, scores and paths of a window, on stderr; as one JSON object on stdout where asked for."""
    built = snapshot.current(run)
    if as_json:
        print_json(summary(run))
        return
    console.say("")
    steps = list(built.funnel) if built else snapshot.funnel(run)
    console.say(funnel_table(steps))
    for told in hints(run.config, steps):
        console.say(f"note  {told}")
    if losers := publisher_table(run):
        console.say("")
        console.say(losers)
    page = score.folder(run) if built else None
    scores = reports.table(page)
    if scores:
        console.say("")
        console.say(scores)
    console.say("")
    if not built and (thin := snapshot.thin_note(run)):
        console.say(f"snapshot  {thin}")
    if built:
        console.say(f"snapshot  {snapshot.folder(run)}  ({built.rows} rows, {built.revision})")
    if page is not None and (page / "report.html").is_file():
        console.say(f"report    {page / 'report.html'}")
    if built and push.repository(run):
        console.say(f"hub       {push.repository(run)}")
    if (week := whole_week(run)) is not None:
        console.say(f"estimate  {week.sentence()}")
    if not hint:
        return
    if run.config.collect.limit is not None and built:
        next_step(f"nest refresh --window {run.window.label}")
    elif not built:
        limit = run.config.collect.limit
        next_step(f"nest status --window {run.window.label}" + (f" --limit {limit}" if limit else ""))
    elif not push.repository(run):
        next_step(f"nest review {run.window.label}")
    else:
        next_step("nest status")


def summary(run: Run) -> dict[str, Any]:
    """The same as plain values."""
    built = snapshot.current(run)
    page: Path | None = score.folder(run) if built else None
    return {
        "window": run.window.label,
        "snapshot": str(snapshot.folder(run)) if built else None,
        "thin": None if built else snapshot.thin_note(run) or None,
        "rows": built.rows if built else 0,
        "revision": built.revision if built else None,
        "funnel": [step.model_dump(mode="json") for step in (built.funnel if built else snapshot.funnel(run))],
        "publishers": publisher_counts(run),
        "report": str(page / "report.html") if page and (page / "report.html").is_file() else None,
        "scores": reports.figures(page),
        "whole_week": week.plain() if (week := whole_week(run)) is not None else None,
    }


def funnel_table(steps: list[FunnelStep]) -> str:
    """One line per step: found, kept, and the reasons of the rest, most frequent first."""
    rows = [["stage", "found", "kept", "left out, by reason"]]
    for step in steps:
        reasons = sorted(step.rejected.items(), key=lambda item: (-item[1], item[0]))
        rows.append([step.stage, str(step.found), str(step.kept), ", ".join(f"{n} {code}" for code, n in reasons)])
    return console.table(rows, right=frozenset({1, 2}))


def publisher_table(run: Run, *, most: int = 8) -> str:
    """Publishers that lost pages or photos, worst first, at most `most` of them; empty where none did."""
    where = collect.place(run)
    found = [one for one in collect.publishers(where) if one.lost or one.photos_lost] if where.finished else []
    if not found:
        return ""
    rows = [["publisher", "articles", "photos", "lost of it, by reason"]]
    for one in found[:most]:
        reasons = sorted((Counter(one.lost) + Counter(one.photos_lost)).items(), key=lambda item: (-item[1], item[0]))
        told = ", ".join(f"{n} {code}" for code, n in reasons)
        rows.append([one.name, str(one.articles), str(one.photos), told])
    if len(found) > most:
        rows.append([f"and {len(found) - most} more", "", "", ""])
    return console.table(rows, right=frozenset({1, 2}))


def publisher_counts(run: Run) -> list[dict[str, Any]]:
    """The same as plain values, all of them."""
    where = collect.place(run)
    return [asdict(one) for one in collect.publishers(where)] if where.finished else []

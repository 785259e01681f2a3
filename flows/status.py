"""`nest status`: windows by stages, one window's funnel, and the next command. Reads the store only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.core.config import load_config
from flows import console
from flows.commands.common import next_step, print_json
from flows.plan import STAGES, State, states
from flows.run import Run, run_for
from flows.stages import snapshot

MARKS = {True: "done", False: "-"}


def show_status(config_path: Path | None, window: str | None, *, as_json: bool = False) -> None:
    """One line per window of the home, newest last; with a window, its funnel as well."""
    config = load_config(config_path)
    if window:
        run = run_for(config, window)
        _show_one(run, as_json=as_json)
        return
    labels = sorted(
        path.name for path in (config.home / "windows").glob("*_*") if re.fullmatch(r"\d{6}_\d{6}", path.name)
    )
    runs = [run_for(config, label) for label in labels]
    lines = [(run, states(run)) for run in runs]
    if as_json:
        print_json([_plain(run, found) for run, found in lines])
        return
    if not lines:
        console.out(f"{config.home}: no window yet")
        next_step("nest refresh" if config.source else "nest init")
        return
    rows = [["window", *STAGES]]
    for run, found in lines[-18:]:
        rows.append([run.window.label, *(_cell(state) for state in found)])
    console.out(console.table(rows))
    if len(lines) > 18:
        console.out(f"and {len(lines) - 18} earlier windows")
    _suggest(lines)


def _cell(state: State) -> str:
    if not state.wanted and not state.finished:
        return "no repo" if state.stage == "push" else "none"
    if state.finished and state.stage in ("collect", "ask", "annotate", "snapshot"):
        return str(state.kept)
    return MARKS[state.finished]


def _suggest(lines: list[tuple[Run, list[State]]]) -> None:
    for run, found in lines:
        if any(state.wanted and not state.finished for state in found):
            next_step(f"nest refresh --window {run.window.label}")
            return
    next_step("nest refresh")


def _show_one(run: Run, *, as_json: bool) -> None:
    from flows.report import funnel_table

    found = states(run)
    if as_json:
        print_json({**_plain(run, found), "funnel": [s.model_dump(mode="json") for s in snapshot.funnel(run)]})
        return
    console.out(f"{run.window.label}: {run.window.first} to {run.window.last}")
    for state in found:
        console.out(f"  {state.stage:<10} {_cell(state):<8} {state.path or ''}")
    steps = snapshot.funnel(run)
    if steps:
        console.out(funnel_table(steps))
    _suggest([(run, found)])


def _plain(run: Run, found: list[State]) -> dict[str, Any]:
    stages = {s.stage: {"finished": s.finished, "wanted": s.wanted, "kept": s.kept} for s in found}
    return {"window": run.window.label, "stages": stages}

"""`nest status`: one screen on the whole home, or one window in detail. Reads the store only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.config import load_config
from flows import console
from flows.commands.common import next_step, print_json

if TYPE_CHECKING:
    from flows.plan import State
    from flows.run import Run

MARKS = {True: "done", False: "-"}


def show_status(
    config_path: Path | None,
    window: str | None,
    *,
    limit: int | None = None,
    as_json: bool = False,
    html: Path | None = None,
    ask_hub: bool = False,
) -> None:
    """The screen, its JSON, or its page; with a window, that window's stages and funnel under this configuration, or
    those of its pilot of `limit` links."""
    config = load_config(config_path, overrides={"collect.limit": limit} if limit is not None else None)
    if window:
        from flows.run import run_for

        _show_one(run_for(config, window), as_json=as_json)
        return
    from flows.status.gather import gather, plain
    from flows.status.screen import lines, render, wants_colours

    status = gather(config, ask_hub=ask_hub)
    if html is not None:
        from engine.core.store import write_atomic
        from flows.status.page import page

        write_atomic(html, page(status).encode())
        console.say(f"wrote {html}")
    elif as_json:
        print_json(plain(status))
    else:
        console.out(render(lines(status), colours=wants_colours()))


def _cell(state: State) -> str:
    if not state.wanted and not state.finished:
        return "no repo" if state.stage == "push" else "none"
    if state.finished and state.stage in ("collect", "ask", "annotate", "snapshot"):
        return str(state.kept)
    return MARKS[state.finished]


def _show_one(run: Run, *, as_json: bool) -> None:
    from flows.hints import hints
    from flows.plan import states
    from flows.report import funnel_table, publisher_counts, publisher_table
    from flows.stages import snapshot
    from flows.status.weeks import pilots

    found = states(run)
    if as_json:
        funnel = [s.model_dump(mode="json") for s in snapshot.funnel(run)]
        print_json({**_plain(run, found), "funnel": funnel, "publishers": publisher_counts(run)})
        return
    limit = run.config.collect.limit
    console.out(
        f"{run.window.label}: {run.window.first} to {run.window.last}"
        + (f", a pilot of {limit} links" if limit else "")
    )
    for state in found:
        console.out(f"  {state.stage:<10} {_cell(state):<8} {state.path or ''}")
    steps = snapshot.funnel(run)
    if steps:
        console.out(funnel_table(steps))
    if told := publisher_table(run):
        console.out(told)
    for note in hints(run.config, steps):
        console.out(f"note  {note}")
    if limit is None and not found[0].finished:
        for name in pilots(run.home.root, run.window.label):
            console.out(
                f"there is a pilot: nest status --window {run.window.label} --limit {name.removeprefix('.pilot')}"
            )
    missing = any(state.wanted and not state.finished for state in found)
    again = f" --limit {limit}" if limit and missing else ""
    next_step(f"nest refresh --window {run.window.label}{again}" if missing or limit else "nest status")


def _plain(run: Run, found: list[State]) -> dict[str, Any]:
    stages = {s.stage: {"finished": s.finished, "wanted": s.wanted, "kept": s.kept} for s in found}
    return {"window": run.window.label, "stages": stages}

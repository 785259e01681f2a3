"""A range of dates: the windows that are missing, one after the other, inline or as deployments.

The plan is made from the store, so it is right after any interruption. A failed window does not stop the others;
the exit code is 3 if any is left.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from engine.core.config import load_config
from engine.core.errors import ConfigError, NestError, RefusedError
from engine.core.windows import split_range
from flows import console
from flows.commands.common import print_json
from flows.plan import all_done, states
from flows.run import Run, run_for
from flows.stages import collect


@dataclass
class Line:
    """One window of the plan and how it ended."""

    run: Run
    state: str
    rows: int = 0
    detail: str = ""


def backfill_range(
    first: str,
    last: str,
    *,
    every: str = "7d",
    only_missing: bool = False,
    config: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
    deployment: str = "",
    attempt: int = 1,
    now: datetime | None = None,
) -> int:
    """Do the windows of a range; returns the exit code: 0 if all are finished, 3 if some are left.

    With `deployment` they are sent to a Prefect server instead, each with an idempotency key, so that sending them
    again changes nothing; the exit code is then 0 if all could be sent.
    """
    lines = plan(first, last, every=every, config=config, now=now)
    if only_missing:
        lines = [line for line in lines if line.state != "finished"]
    if not dry_run:
        for line in lines:
            if line.state == "to do" and deployment:
                _send(line, config, deployment, attempt)
            elif line.state == "to do":
                _do(line, config)
    if as_json:
        print_json(
            [{"window": x.run.window.label, "state": x.state, "rows": x.rows, "detail": x.detail} for x in lines]
        )
    elif lines:
        rows = [["window", "state", "rows", ""]] + [[x.run.window.label, x.state, str(x.rows), x.detail] for x in lines]
        console.say(console.table(rows, right=frozenset({2})))
    else:
        console.say("nothing is missing in this range.")
    left = [line for line in lines if line.state not in ("finished", "open", "sent")]
    return 3 if left and not dry_run else 0


def plan(first: str, last: str, *, every: str, config: Path | None, now: datetime | None = None) -> list[Line]:
    """The windows of the range with their state: finished, to do, or open (not over yet)."""
    match = re.fullmatch(r"(\d{1,3})d?", every, re.ASCII)
    if not match:
        raise ConfigError(f"'{every}' is not a length of a window: write 7d")
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError as error:
        raise ConfigError(f"not a date ({error}): write YYYY-MM-DD") from error
    settings = load_config(config)
    instant = now or datetime.now(UTC)
    lines = []
    for window in split_range(*days, every_days=int(match[1])):
        try:
            run = run_for(settings, window.label, now=instant)
        except RefusedError as error:
            closed = run_for(settings, window.label, now=window.end)
            lines.append(Line(closed, "open", detail=str(error)))
            continue
        lines.append(_line(run))
    return lines


def _line(run: Run) -> Line:
    rows = next(state.kept for state in states(run) if state.stage == "snapshot")
    return Line(run, "finished" if all_done(run) else "to do", rows)


def _do(line: Line, config: Path | None) -> None:
    from flows.commands.pipeline import run_flow

    console.say(f"backfill: window {line.run.window.label}")
    empty: dict[str, Any] = {}
    try:
        run_flow(line.run, config=config, overrides=empty)
    except NestError as error:
        line.state, line.detail = ("left" if error.exit_code == 3 else "failed"), str(error)
        console.say(f"  {line.detail}")
        return
    after = _line(line.run)
    line.state, line.rows = after.state, after.rows


def _send(line: Line, config: Path | None, deployment: str, attempt: int) -> None:
    """One flow run per window. The server looks only at the key: a failed run keeps it, hence the attempt's number."""
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError("--deployment needs a Prefect server: set PREFECT_API_URL, or leave it out to run here")
    from prefect.deployments import run_deployment

    label = line.run.window.label
    flow_run = run_deployment(
        deployment,
        parameters={"window": label, "config": str(config.absolute()) if config else None},
        idempotency_key=f"{deployment}:{label}:{collect.place(line.run).path.name}:{attempt}",
        timeout=0,
        as_subflow=False,
    )
    line.state, line.detail = "sent", f"flow run {flow_run.name}"  # type: ignore[union-attr]

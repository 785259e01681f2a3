"""A range of dates: the windows that are missing, inline, some at a time, or as deployments.

The plan is made from the store, so it is right after any interruption. A failed window does not stop the others;
the exit code is 3 if any is left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from engine.core.config import load_config
from engine.core.errors import ConfigError, NestError, RefusedError
from engine.core.windows import split_range
from flows import console
from flows.commands.common import print_json
from flows.plan import all_done, states
from flows.prospects import Prospect, expected_usd, prospects, spent_per_window
from flows.run import Run, run_for

#: States of a line that need no further call.
SETTLED = ("finished", "open", "sent")
#: A longer range is a slip of the pen.
MOST_WINDOWS = 1000


@dataclass
class Line:
    """One window of the plan and how it ended: finished, to do, open (not over yet), sent, left or failed."""

    run: Run
    state: str
    rows: int = 0
    detail: str = ""
    usd: float | None = None
    sources: list[Prospect] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.run.window.label

    def plain(self) -> dict[str, Any]:
        told = [{"source": s.source, "remembered": s.remembered, "reach": s.reach} for s in self.sources]
        return {
            "window": self.label,
            "state": self.state,
            "rows": self.rows,
            "usd": self.usd,
            "sources": told,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class How:
    """How the missing windows are done: here one after the other, `jobs` at a time, or sent to a deployment (and
    waited for). `overrides` hold for each window."""

    config: Path | None = None
    overrides: dict[str, Any] | None = None
    jobs: int = 1
    deployment: str = ""
    attempt: int = 1
    wait: bool = False


def backfill_range(
    first: str,
    last: str,
    *,
    every: str = "7d",
    only_missing: bool = False,
    how: How | None = None,
    dry_run: bool = False,
    as_json: bool = False,
    now: datetime | None = None,
) -> int:
    """Do the windows of a range; returns the exit code: 0 if all are finished, 3 if some are left.

    With a deployment they are sent to a Prefect server instead, each with an idempotency key, so that sending them
    again changes nothing; the exit code is then 0 if all could be sent, or with `wait` if all were finished.
    """
    from flows.backfill_do import do_here, do_parallel, send

    told = how or How()
    lines = plan(first, last, every=every, config=told.config, overrides=told.overrides, now=now)
    if only_missing:
        lines = [line for line in lines if line.state != "finished"]
    missing = [line for line in lines if line.state == "to do"]
    if dry_run:
        _prospects(missing)
    elif told.deployment:
        send(missing, told)
    elif told.jobs > 1:
        do_parallel(missing, told)
    else:
        do_here(missing, told)
    _show(lines, as_json=as_json, planned=dry_run)
    return 3 if not dry_run and any(line.state not in SETTLED for line in lines) else 0


def plan(
    first: str,
    last: str,
    *,
    every: str,
    config: Path | None,
    overrides: dict[str, Any] | None = None,
    now: datetime | None = None,
) -> list[Line]:
    """The windows of the range with their state: finished, to do, or open (not over yet)."""
    match = re.fullmatch(r"(\d{1,3})d?", every, re.ASCII)
    if not match:
        raise ConfigError(f"'{every}' is not a length of a window: write 7d")
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError as error:
        raise ConfigError(f"not a date ({error}): write YYYY-MM-DD") from error
    count = ((days[1] - days[0]).days + 1) / max(1, int(match[1]))
    if count > MOST_WINDOWS:
        raise ConfigError(f"{first} to {last} are {count:.0f} windows of {every}: at most {MOST_WINDOWS} at a time")
    settings = load_config(config, overrides=overrides)
    instant = now or datetime.now(UTC)
    lines = []
    for window in split_range(*days, every_days=int(match[1])):
        try:
            run = run_for(settings, window.label, now=instant)
        except RefusedError as error:
            closed = run_for(settings, window.label, now=window.end)
            lines.append(Line(closed, "open", detail=str(error)))
            continue
        lines.append(line_of(run))
    return lines


def line_of(run: Run) -> Line:
    """A window as the store has it now."""
    rows = next(state.kept for state in states(run) if state.stage == "snapshot")
    return Line(run, "finished" if all_done(run) else "to do", rows)


def settle(line: Line, error: NestError | None = None) -> None:
    """Write into the line how its window ended."""
    if error is not None:
        line.state, line.detail = ("left" if error.exit_code == 3 else "failed"), str(error)
        return
    after = line_of(line.run)
    line.state, line.rows, line.detail = ("finished" if after.state == "finished" else "left"), after.rows, ""


def _prospects(lines: Sequence[Line]) -> None:
    """Say of each missing window what it can be had from and what it would cost."""
    if not lines:
        return
    per_window = spent_per_window(lines[0].run.home.root)
    for line in lines:
        line.sources = prospects(line.run)
        line.usd = expected_usd(line.run, per_window)
        useless = [s.source for s in line.sources if s.empty]
        if not line.sources:
            line.detail = "no source is configured"
        elif len(useless) == len(line.sources):
            line.detail = "nothing to be had: feeds do not reach back and nothing was harvested"
        elif useless:
            line.detail = f"nothing from {', '.join(useless)}"


def _show(lines: Sequence[Line], *, as_json: bool, planned: bool) -> None:
    if as_json:
        print_json([line.plain() for line in lines])
        return
    if not lines:
        console.say("nothing is missing in this range.")
        return
    head = ["window", "state", "rows", "est. usd" if planned else "", ""]
    rows = [head]
    for line in lines:
        usd = ("?" if line.usd is None else f"{line.usd:.2f}") if planned and line.state == "to do" else ""
        rows.append([line.label, line.state, str(line.rows), usd, line.detail])
    console.say(console.table(rows, right=frozenset({2, 3})))
    if planned:
        for words in sorted({s.words() for line in lines for s in line.sources if not s.remembered}):
            console.say(f"  {words}")
        for line in lines:
            for source in line.sources:
                if source.remembered:
                    console.say(f"  {line.label}: {source.words()}")
        known = [line.usd for line in lines if line.usd is not None]
        unknown = sum(line.usd is None and line.state == "to do" for line in lines)
        more = f", and {unknown} windows of unknown cost" if unknown else ""
        console.say(f"about {sum(known):.2f} US dollars in all{more}")

"""What the weekly run missed, found every day: a dead worker, a key that had run out, a week that nobody ran.

Looks at the finished weeks of the last months that began after the home's first window, and sends those that are not
finished to the low-priority queue. Sending is all it does, so it is done in seconds and harmless to repeat.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.deployments import run_deployment

from engine.core.config import Config, load_config
from engine.core.errors import ConfigError
from engine.core.schema import Window
from engine.core.windows import latest_window, parse_window
from flows import console
from flows.plan import all_done
from flows.run import run_for

DEPLOYMENT = "refresh/backfill"
#: States of a run that has not ended.
OPEN = FlowRunFilterState(
    type=FlowRunFilterStateType(
        any_=[StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.PAUSED, StateType.CANCELLING]
    )
)


@flow(name="catch-up", persist_result=False)
def catch_up(
    config: str | None = None, overrides: dict[str, Any] | None = None, deployment: str = DEPLOYMENT
) -> list[str]:
    """Send the missing weeks to `deployment`; returns their labels. One that is on its way already is left alone."""
    settings = load_config(Path(config) if config else None, overrides=overrides)
    now = datetime.now(UTC)
    sent = []
    for window in weeks(settings, now):
        run = run_for(settings, window.label, now=now)
        if all_done(run) or _on_its_way(window):
            continue
        run_deployment(
            deployment,
            parameters={"window": window.label, "config": config, "overrides": overrides},
            idempotency_key=f"catch-up:{window.label}:{now:%Y-%m-%d}",
            flow_run_name=f"refresh-{window.label}",
            timeout=0,
            as_subflow=False,
        )
        console.say(f"catch-up: {window.label} was missing and is sent to {deployment}")
        sent.append(window.label)
    return sent


def weeks(config: Config, now: datetime) -> list[Window]:
    """The finished weeks of the last `catch_up_weeks`, oldest first, none before the home's first window."""
    begun = first_day(config.home)
    if begun is None:
        return []
    latest = latest_window(now, lag_days=config.window.lag_days)
    found = []
    for back in reversed(range(config.flows.catch_up_weeks)):
        window = Window(first=latest.first - timedelta(weeks=back), last=latest.last - timedelta(weeks=back))
        if window.first >= begun:
            found.append(window)
    return found


def first_day(home: Path) -> Any:
    """First day of the earliest window of a home, None where there is none."""
    days = []
    for path in (home / "windows").glob("*_*"):
        try:
            days.append(parse_window(path.name).first)
        except ConfigError:
            continue  # a folder of somebody's own
    return min(days, default=None)


def _on_its_way(window: Window) -> bool:
    """Whether the server knows a run for the window that has not ended; runs of a schedule name none."""
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=FlowRunFilter(state=OPEN), limit=200)
    return any(run.parameters.get("window") == window.label for run in runs)

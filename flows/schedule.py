"""The window of a scheduled run: derived from the time it was scheduled for, not from when it starts."""

from __future__ import annotations

from pathlib import Path

from engine.core.config import load_config
from engine.core.windows import latest_window


def scheduled_window(config: Path | None = None) -> str:
    """Label of the latest finished week before the running flow's scheduled start (aware UTC). So runs that pile up
    behind a dead worker are each of their own week."""
    from prefect.runtime import flow_run

    lag = load_config(config).window.lag_days
    return latest_window(flow_run.scheduled_start_time, lag_days=lag).label


def run_name() -> str:
    """What the running refresh is called: by the window it was given, or derived."""
    from prefect.runtime import flow_run

    told = flow_run.parameters
    config = told.get("config")
    return f"refresh-{told.get('window') or scheduled_window(Path(config) if config else None)}"

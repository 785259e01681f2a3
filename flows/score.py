"""Scoring as a flow of its own: segmenters over a window's finished snapshot, on the pool that has their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.run import open_run
from flows.stages import score as stage
from flows.stages.base import Done
from flows.tasks import step


@flow(name="score", flow_run_name="score-{window}", persist_result=False)
def score(window: str, config: str | None = None, overrides: dict[str, Any] | None = None) -> Done:
    """Score the window's snapshot with the segmenters that the configuration names."""
    run = open_run(window, config_path=Path(config) if config else None, overrides=overrides)
    return step(f"score {run.window.label}", stage.do, run)

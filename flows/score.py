"""Scoring as a flow of its own: segmenters over a window's finished snapshot, on the pool that has their models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow

from flows.fanout import fan_out
from flows.run import Run, open_run
from flows.stages import predict
from flows.stages import score as stage
from flows.stages.base import Done
from flows.tasks import patiently, step


@flow(name="score", flow_run_name="score-{window}", persist_result=False)
def score(window: str, config: str | None = None, overrides: dict[str, Any] | None = None) -> Done:
    """Score the window's snapshot with the segmenters that the configuration names."""
    run = open_run(window, config_path=Path(config) if config else None, overrides=overrides)
    return score_here(run)


def score_here(run: Run, *, wait_s: float = 0.0) -> Done:
    """Score in the running flow; predictions are made on the task runner first, where the configuration names one."""
    task = stage.task_of(run) if run.config.flows.task_runner else None
    if task is not None:
        count = predict.shard_count(task, task.open())
        for name in run.config.score.segmenters:
            missing = predict.missing(stage.places(task)[stage.label_of(name)], count)
            fan_out(run, "predict", predict_shards, name, shards=missing)
    done: Done = step(f"score {run.window.label}", partial(patiently, wait_s=wait_s), stage.do, run)
    return done


def predict_shards(run: Run, name: str, indexes: Sequence[int]) -> int:
    """Predict these shards in this process, as one of several workers; returns how many samples were done here."""
    task = stage.task_of(run)
    assert task is not None, "only a finished snapshot is fanned out"
    where = stage.places(task)[stage.label_of(name)]
    return asyncio.run(predict.do_shards(task, name, where, task.open(), indexes))

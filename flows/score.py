"""Scoring as a flow of its own: segmenters over a window's finished snapshot, on the pool that has their models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow

from engine.core.errors import TransientError
from engine.core.store import held
from flows.fanout import fan_out
from flows.run import Run, open_run
from flows.stages import predict
from flows.stages import score as stage
from flows.stages.base import Done
from flows.tasks import patiently, step
from flows.watch import send, watch

#: How often the deployment is run again after runs that ended without a report (a lost worker).
ROUNDS = 3


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
            where = stage.places(task)[stage.label_of(name)]
            predict.prepare(task, where)
            missing = predict.missing(where, count)
            fan_out(run, "predict", predict_shards, name, shards=missing)
    done: Done = step(f"score {run.window.label}", partial(patiently, wait_s=wait_s), stage.do, run)
    return done


def score_there(run: Run, config: str | None, overrides: dict[str, Any] | None, *, wait_s: float = 0.0) -> Done:
    """Score by the deployment that the configuration names, and wait; its workers have the models."""
    task = stage.task_of(run)
    if task is not None and run.config.score.segmenters and not stage.finished(run):
        count = predict.shard_count(task, task.open())
        places = list(stage.places(task).values())

        def progress() -> tuple[int, bool]:
            left = [(place, index) for place in places for index in predict.missing(place, count)]
            busy = any(held(place.path / f".shard-{index:05d}.lock") for place, index in left)
            # the report itself is one piece more, and nothing is locked while it is made
            return len(left) + (not stage.finished(run)), busy or not left

        name = run.config.flows.score_deployment
        for _ in range(ROUNDS):
            parameters = {"window": run.window.label, "config": config, "overrides": overrides}
            flow_run = send(run, name, parameters)
            watch(run, [flow_run], what="scores", deployment=name, progress=progress)
            if stage.finished(run):
                break
        else:
            raise TransientError(f"'{name}' did not score {run.window.label} in {ROUNDS} rounds: look at its workers")
    return score_here(run, wait_s=wait_s)


def predict_shards(run: Run, name: str, indexes: Sequence[int]) -> int:
    """Predict these shards in this process, as one of several workers; returns how many samples were done here."""
    task = stage.task_of(run)
    assert task is not None, "only a finished snapshot is fanned out"
    where = stage.places(task)[stage.label_of(name)]
    return asyncio.run(predict.do_shards(task, name, where, task.open(), indexes))

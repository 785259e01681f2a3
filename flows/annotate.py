"""The GPU workers' flow: shards of a window's images to masks.

It runs on the `gpu` pool, one worker per card, or inside a refresh. A shard is committed at once; a worker that
dies loses one shard, and whoever comes next does it.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import flow
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.runtime import flow_run

from engine.core.errors import TransientError
from flows import log
from flows.fanout import fan_out
from flows.run import Run, open_run
from flows.stages import annotate as stage
from flows.tasks import step
from flows.watch import send, watch

#: How often shards are sent out again after the runs that had them ended without finishing (a lost worker).
ROUNDS = 3
PROGRESS_EVERY_S = 30.0


@flow(name="annotate", flow_run_name="annotate-{window}", persist_result=False)
def annotate(
    window: str,
    config: str | None = None,
    overrides: dict[str, Any] | None = None,
    shards: list[int] | None = None,
) -> int:
    """Annotate the given shards of a window, or all that are missing; returns the number of images done here."""
    run = open_run(window, config_path=Path(config) if config else None, overrides=overrides)
    with log.about(window=run.window.label, snapshot=run.snapshot_name, flow_run=str(flow_run.id or "")):
        return annotate_here(run, shards)


def annotate_here(run: Run, shards: list[int] | None = None) -> int:
    """One task per shard in the running flow, or a few tasks on the task runner that the configuration names."""
    stage.prepare(run)
    wanted = stage.missing(run) if shards is None else shards
    if run.config.flows.task_runner:
        return fan_out(run, "annotate", stage.do_shards, shards=wanted)
    images = 0
    key = f"masks-{run.window.label.replace('_', '-')}"
    shown = create_progress_artifact(0.0, key=key, description="Shards of masks done") if wanted else None
    told = time.monotonic()
    for number, index in enumerate(wanted, 1):
        images += step(f"annotate {run.window.label} shard {index}", stage.do_shards, run, [index])
        if shown is not None and (number == len(wanted) or time.monotonic() - told > PROGRESS_EVERY_S):
            told = time.monotonic()
            update_progress_artifact(cast(UUID, shown), 100.0 * number / len(wanted))
    return images


def annotate_there(run: Run, config: str | None, overrides: dict[str, Any] | None) -> None:
    """Send the missing shards to the deployment that the configuration names, a few runs with many shards each, and
    wait. Every run gets all shards, each beginning elsewhere: locks keep two from doing one, and what a lost worker
    leaves the others find, or the next round."""
    name, runs = run.config.flows.annotate_deployment, run.config.flows.annotate_runs
    stage.prepare(run)
    for _ in range(ROUNDS):
        missing = stage.missing(run)
        if not missing:
            return
        flow_runs = []
        for number in range(min(runs, len(missing))):
            start = number * len(missing) // min(runs, len(missing))
            parameters = {
                "window": run.window.label,
                "config": config,
                "overrides": overrides,
                "shards": missing[start:] + missing[:start],
            }
            flow_runs.append(send(run, name, parameters))
        watch(run, flow_runs, what="masks", deployment=name, progress=partial(stage.progress, run))
    if left := stage.missing(run):
        raise TransientError(f"{len(left)} shards came back undone from '{name}' {ROUNDS} times: look at its workers")

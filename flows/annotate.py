"""The GPU workers' flow: shards of a window's images to masks.

It runs on the `gpu` pool, one worker per card, or inside a refresh. A shard is committed at once; a worker that
dies loses one shard, and whoever comes next does it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.run import Run, open_run
from flows.stages import annotate as stage
from flows.tasks import step


@flow(name="annotate", flow_run_name="annotate-{window}", persist_result=False)
def annotate(
    window: str,
    config: str | None = None,
    overrides: dict[str, Any] | None = None,
    shards: list[int] | None = None,
) -> int:
    """Annotate the given shards of a window, or all that are missing; returns the number of images done here."""
    run = open_run(window, config_path=Path(config) if config else None, overrides=overrides)
    return annotate_here(run, shards)


def annotate_here(run: Run, shards: list[int] | None = None) -> int:
    """One task per shard in the running flow."""
    images = 0
    for index in stage.missing(run) if shards is None else shards:
        images += step(f"annotate {run.window.label} shard {index}", stage.do_shards, run, [index])
    return images

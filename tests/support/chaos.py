"""A process that builds windows by the stages alone and is made to be killed: its modules are imported beforehand, so
that a kill after a tenth of a second already hits work."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

MODULES = [
    "support.chaos",
    "flows.stages.annotate",
    "flows.stages.snapshot",
    "flows.wiring",
    "engine.news.collect",
    "engine.questions.ask",
    "engine.questions.deps",
    "engine.snapshot.build",
    "engine.llm.client",
    "segmentation.annotate",
    "openai",
    "pyarrow.parquet",
    "datasets",
]


def context() -> ForkServerContext:
    """The context whose server has imported what a build needs."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(MODULES)
    return made


def start(
    context: ForkServerContext, config: Path, labels: Sequence[str], env: Mapping[str, str], log: Path
) -> ForkServerProcess:
    """Build the windows, one after the other, in a process of its own."""
    process = context.Process(target=build, args=(str(config), list(labels), dict(env), str(log)))
    process.start()
    return process


def build(config: str, labels: list[str], env: dict[str, str], log: str) -> None:
    """Collect, ask, annotate and snapshot of each window; what is said goes to the log."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(env)
    from flows.run import open_run
    from flows.stages import annotate, snapshot

    for label in labels:
        run = open_run(label, config_path=Path(config))
        annotate.do(run)
        snapshot.do(run)

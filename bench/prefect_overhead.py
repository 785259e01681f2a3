"""What Prefect costs: a window's annotate stage through the flow against the same stage called directly.

    python -m bench.prefect_overhead [--images 2000] [--work-s 0.1] [--shard-images 64]

The work on an image is a sleep, so that nothing but the way to it differs. Start-up (the embedded server, its database,
imports) is told apart, for a new home and for one that has a database.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.annotate_shards import WINDOW, prepare
from engine.core.config import FlowsSection
from engine.core.schema import Code, Question, Rejected, Stage
from flows.run import Run
from flows.stages import annotate


def simulate(seconds: float) -> None:
    """Replace the work on images by a sleep each."""
    from segmentation import annotate as work

    def run(shard: Sequence[Question], *_: Any, **__: Any) -> list[Rejected]:
        time.sleep(seconds * len({image for question in shard for image in question.images}))
        return [Rejected(item=q.id, stage=Stage.ANNOTATE, code=Code.NO_CANDIDATE, detail="simulated") for q in shard]

    work.run = run  # type: ignore[assignment]
    annotate._deps = lambda _: None  # type: ignore[assignment,return-value]


def direct(run: Run) -> float:
    """Seconds of the stage called as a function, shard after shard."""
    started = time.monotonic()
    annotate.prepare(run)
    for index in annotate.missing(run):
        annotate.do_shards(run, [index])
    annotate.finish(run)
    return time.monotonic() - started


def flow(run: Run) -> float:
    """Seconds of the flow's body, under an embedded server."""
    from flows.embedded.start import prefect

    with prefect(run.home.root):
        from prefect import flow as as_flow

        from flows.annotate import annotate_here
        from flows.tasks import step

        seconds = []

        @as_flow(name="measured", persist_result=False)
        def measured() -> None:
            started = time.monotonic()
            annotate_here(run)
            step(f"annotate {run.window.label}", annotate.finish, run)
            seconds.append(time.monotonic() - started)

        measured()
    return seconds[0]


START = """
import sys
from pathlib import Path
from flows.embedded.start import prefect
with prefect(Path(sys.argv[1])):
    import flows.refresh
    from prefect import flow
    flow(name="empty", persist_result=False)(lambda: None)()
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--work-s", type=float, default=0.1)
    parser.add_argument("--shard-images", type=int, default=64)
    told = parser.parse_args(arguments)
    assert FlowsSection().task_runner == ""
    simulate(told.work_s)
    with tempfile.TemporaryDirectory(prefix="nest-bench-") as folder:
        runs = [
            prepare(Path(folder) / name, images=told.images, shard_images=told.shard_images)
            for name in ("flow", "direct")
        ]
        home = str(Path(folder) / "start")
        first = _timed([sys.executable, "-c", START, home])
        again = _timed([sys.executable, "-c", START, home])
        alone = direct(runs[1])
        through = flow(runs[0])
        print(f"window {WINDOW}: {told.images} images, {told.work_s} s of work each, {told.shard_images} a shard")
        print(f"called directly      {alone:8.2f} s")
        print(f"through the flow     {through:8.2f} s   {100 * (through / alone - 1):+.2f} %")
        print(f"start to end of an empty flow, new home {first:8.2f} s,  again {again:.2f} s")
    bare = _timed([sys.executable, "-c", "pass"])
    prefect_alone = _timed([sys.executable, "-c", "import prefect"])
    print(f"interpreter alone    {bare:8.2f} s,  with prefect imported {prefect_alone:.2f} s")
    return 0


def _timed(words: list[str]) -> float:
    started = time.monotonic()
    subprocess.run(words, check=True)
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())

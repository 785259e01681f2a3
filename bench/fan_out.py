"""Annotate on a two-worker Dask cluster against one process: the same bytes, and how much faster.

    python -m bench.fan_out [--images 240] [--shard-images 12]

Both go through the same flow on the same machine with the portable annotator, one thread per process.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.annotate_shards import digests, prepare
from flows.run import Run
from flows.stages import annotate


def timed(run: Run) -> tuple[float, float]:
    """Seconds of the annotate stage in a flow, and of the stage's shards alone, without the cluster's start."""
    from prefect import flow as as_flow

    from flows.annotate import annotate_here

    seconds = []

    @as_flow(name="measured", persist_result=False)
    def measured() -> None:
        started = time.monotonic()
        annotate_here(run)
        seconds.append(time.monotonic() - started)

    measured()
    place = annotate.place(run)
    assert place is not None
    stamps = [path.stat().st_mtime for path in place.path.glob("shards/*/manifest.json")]
    annotate.finish(run)
    return seconds[0], max(stamps) - min(stamps)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=240)
    parser.add_argument("--shard-images", type=int, default=12)
    told = parser.parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", OPENCV_FOR_THREADS_NUM="1", OPENBLAS_NUM_THREADS="1")
    from flows.embedded.start import prefect

    with tempfile.TemporaryDirectory(prefix="nest-bench-") as folder:
        plain = prepare(Path(folder) / "plain", images=told.images, shard_images=told.shard_images)
        spread = prepare(Path(folder) / "spread", images=told.images, shard_images=told.shard_images)
        flows = spread.config.flows.model_copy(update={"task_runner": "prefect_dask:DaskTaskRunner"})
        spread = replace(spread, config=spread.config.model_copy(update={"flows": flows}))
        with prefect(Path(folder)):
            one, one_shards = timed(plain)
            two, two_shards = timed(spread)
        same = digests(plain) == digests(spread)
        print(f"{told.images} images in shards of {told.shard_images}, portable annotator")
        print(f"one process          {one:8.2f} s   first to last shard {one_shards:8.2f} s")
        print(f"two Dask workers     {two:8.2f} s   first to last shard {two_shards:8.2f} s")
        print(f"speed-up             {one / two:8.2f}     without the cluster's start {one_shards / two_shards:8.2f}")
        print(f"same bytes           {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

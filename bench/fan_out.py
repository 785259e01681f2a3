"""Annotate on a two-worker Dask cluster against one process: the same bytes, and how much faster.

    python -m bench.fan_out [--images 120] [--shard-images 6] [--scale 8]

Both go through the same flow on the same machine with the portable annotator, one thread per process. With `--scale 8`
the pictures are of a news photo's size, about 650 by 850 pixels. Processor seconds (those of the workers with their
start) hardly depend on what else the machine does; seconds on the clock do.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.annotate_shards import digests, prepare
from flows.run import Run
from flows.stages import annotate


def timed(run: Run) -> tuple[float, float, float]:
    """Seconds of the annotate stage in a flow, of the stage's shards alone, without the cluster's start, and processor
    seconds of this process and of those that it started and that have ended."""
    from prefect import flow as as_flow

    from flows.annotate import annotate_here

    seconds = []

    @as_flow(name="measured", persist_result=False)
    def measured() -> None:
        started = time.monotonic()
        annotate_here(run)
        seconds.append(time.monotonic() - started)

    before = _processor_s()
    measured()
    spent = _processor_s() - before
    place = annotate.place(run)
    assert place is not None
    stamps = [path.stat().st_mtime for path in place.path.glob("shards/*/manifest.json")]
    annotate.finish(run)
    return seconds[0], max(stamps) - min(stamps), spent


def _processor_s() -> float:
    told = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in told)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=120)
    parser.add_argument("--shard-images", type=int, default=6)
    parser.add_argument("--scale", type=int, default=8)
    told = parser.parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", OPENCV_FOR_THREADS_NUM="1", OPENBLAS_NUM_THREADS="1")
    from flows.embedded.start import prefect

    with tempfile.TemporaryDirectory(prefix="nest-bench-") as folder:
        sizes = {"images": told.images, "shard_images": told.shard_images, "scale": told.scale}
        plain, spread = (prepare(Path(folder) / name, **sizes) for name in ("plain", "spread"))
        flows = spread.config.flows.model_copy(update={"task_runner": "prefect_dask:DaskTaskRunner"})
        spread = replace(spread, config=spread.config.model_copy(update={"flows": flows}))
        with prefect(Path(folder)):
            one, one_shards, one_work = timed(plain)
            two, two_shards, two_work = timed(spread)
        same = digests(plain) == digests(spread)
        print(f"{told.images} images in shards of {told.shard_images}, portable annotator")
        print("                     seconds   first to last shard   processor seconds")
        print(f"one process          {one:7.2f}   {one_shards:19.2f}   {one_work:17.2f}")
        print(f"two Dask workers     {two:7.2f}   {two_shards:19.2f}   {two_work:17.2f}")
        print(f"speed-up             {one / two:7.2f}   {one_shards / two_shards:19.2f}")
        print(f"same bytes           {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

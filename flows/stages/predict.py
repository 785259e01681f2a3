"""Predict: one segmenter over a benchmark, shard by shard, so that a killed run goes on where it was.

Several processes may share the shards: each shard is locked while it is made. Scoring and the report are in `score`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import TransientError
from engine.core.schema import ModelRef, Prediction, Timing
from engine.core.store import StageDir
from flows.stages.base import Shard, by_shards, clock

if TYPE_CHECKING:
    from flows.stages.score import Task
    from inference.benchmarks.base import Benchmark, BenchmarkSample


#: What the names of predictions from files begin with.
FILES = "files:"


def shard_count(task: Task, benchmark: Benchmark) -> int:
    """How many shards the benchmark has."""
    return -(-len(benchmark) // task.config.score.shard_samples)


def prepare(task: Task, where: StageDir) -> None:
    """Before anybody asks which shards are missing: they are cut as this configuration cuts them."""
    if not where.finished:
        where.agree(f"{task.config.score.shard_samples} samples")


def missing(where: StageDir, count: int) -> list[int]:
    """Numbers of the shards that are not made yet; none of a finished stage."""
    return [] if where.finished else [index for index in range(count) if not where.shard_done(index)]


async def do_shards(task: Task, name: str, where: StageDir, benchmark: Benchmark, indexes: Sequence[int]) -> int:
    """Predict these shards in this order and return the number of samples; one that another process holds or has
    finished is left to it."""
    from flows.evaluating import inference_deps
    from inference import predict
    from inference.segmenters.registry import make

    if not indexes:
        return 0
    size = task.config.score.shard_samples
    async with inference_deps(task.config, task.home, task.run, name=name) as deps:
        runner = make(name, task.config, deps=deps)

        async def work(samples: Sequence[BenchmarkSample]) -> Shard:
            items = [sample.item() for sample in samples]
            kept, timings = await predict.run(items, task.config.score, deps=predict.PredictDeps(runner))
            return kept, (), {"timings": [timing.model_dump(mode="json") for timing in timings]}

        total = sum(min(size, len(benchmark) - index * size) for index in indexes)
        return await by_shards(where, _shards(benchmark, size, indexes), work, label=name, total=total)


async def predict_all(task: Task, name: str, where: StageDir, benchmark: Benchmark) -> None:
    """Make the shards that are missing, then the whole. Raises `TransientError` where another process still works."""
    started = time.monotonic()
    if name.startswith(FILES):
        take(Path(name.removeprefix(FILES)), where, benchmark, started=started)
        return
    prepare(task, where)
    count = shard_count(task, benchmark)
    await do_shards(task, name, where, benchmark, missing(where, count))
    if left := missing(where, count):
        raise TransientError(f"{len(left)} of {count} shards of {name} are not done yet: run the same command again")
    finish(where, count, samples=len(benchmark), started=started)


def check_files(name: str, benchmark: Benchmark) -> None:
    """Before anything is made for predictions from elsewhere: raises `ConfigError` with every complaint about them."""
    if name.startswith(FILES):
        from inference.metrics.submission import require_valid

        require_valid(Path(name.removeprefix(FILES)), benchmark)


def take(path: Path, where: StageDir, benchmark: Benchmark, *, started: float) -> None:
    """Predictions that were made elsewhere; `check_files` has looked at them.

    Samples that the file does not speak of stay out, so that they count as missing.
    """
    from inference.metrics.submission import read_predictions

    models = (ModelRef(role="files", name=path.name),)
    found = read_predictions(path, segmenter=f"{FILES}{path.name}", benchmark=benchmark, models=models)
    predictions = sorted(found, key=lambda one: one.sample_id)
    where.commit(predictions, [], stage="predict", found=len(benchmark), run=clock(started))


def finish(where: StageDir, count: int, *, samples: int, started: float) -> None:
    """Join the shards, with what they took beside them."""
    from inference.report.costs import module_costs

    predictions, _ = where.read_shards(Prediction, count)
    costs = module_costs(_timings(where, count), samples=samples)
    told = {**clock(started), "costs": [asdict(cost) for cost in costs]}
    where.commit(predictions, [], stage="predict", found=samples, run=told)


def _timings(where: StageDir, count: int) -> Iterator[Timing]:
    """What the shards took, those of earlier runs among them."""
    for index in range(count):
        yield from (Timing.model_validate(told) for told in where.run_of(index).get("timings", ()))


def _shards(benchmark: Benchmark, size: int, indexes: Iterable[int]) -> Iterator[tuple[int, Sequence[BenchmarkSample]]]:
    """Shards by number in the given order; the benchmark is walked anew where the order goes back."""
    position, samples = 0, iter(benchmark)
    for index in indexes:
        if index < position:
            position, samples = 0, iter(benchmark)
        # pictures are decoded only where they are used, so that passing over samples costs little
        skipped = (index - position) * size
        yield index, list(itertools.islice(samples, skipped, skipped + size))
        position = index + 1

"""Score: the configured segmenters over the window's snapshot, then the report. Scoring never waits for a push.

Predictions are kept per segmenter and key, so a new segmenter costs only its own run, and a report is only counting.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import ConfigError
from engine.core.schema import Prediction, ScoreReport
from engine.core.store import StageDir, committed_directory, sha256_file, stage_key
from flows import console
from flows.run import Run
from flows.stages import snapshot
from flows.stages.base import Done, clock

if TYPE_CHECKING:
    from inference.benchmarks.base import Benchmark, BenchmarkSample

#: Raised whenever the figures or the report's pages would differ for the same predictions.
REPORT_VERSION = "1"


def places(run: Run) -> dict[str, StageDir] | None:
    """Where each segmenter's predictions lie; None while there is no snapshot of this configuration."""
    from flows.wiring import index_digest
    from inference.predict import VERSION
    from inference.segmenters.registry import segmenter_key

    if not snapshot.finished(run) or snapshot.manifest(snapshot.folder(run)) is None:
        return None
    digest = sha256_file(snapshot.folder(run) / "snapshot.json")
    search = index_digest(run)
    found = {}
    for name in run.config.score.segmenters:
        told = segmenter_key(name, run.config, weights_dir=run.weights, search=search)
        told["cutoff_lag_days"] = run.config.score.cutoff_lag_days
        key = stage_key("predict", VERSION, told, [digest])
        found[name] = run.home.predictions(run.snapshot_name, name, key)
    return found


def folder(run: Run) -> Path | None:
    """Where the window's report lies; None while there are no predictions."""
    predictions = places(run)
    if not predictions or not all(place.finished for place in predictions.values()):
        return None
    inputs = [digest for place in predictions.values() for digest in place.digests()]
    config = {"score": run.config.score.keyed(), "snapshot": sha256_file(snapshot.folder(run) / "snapshot.json")}
    return run.home.report(run.snapshot_name, stage_key("score", REPORT_VERSION, config, inputs))


def finished(run: Run) -> bool:
    place = folder(run)
    return place is not None and (place / "report.json").is_file()


def do(run: Run) -> Done:
    """Predict and score unless that is done."""
    if snapshot.manifest(snapshot.folder(run)) is None:
        return Done("score", "", "", 0, 0, False, "no snapshot, nothing to score")
    predictions = places(run)
    if predictions is None:
        raise ConfigError(f"the snapshot of {run.window.label} is not of this configuration: run 'nest snapshot' first")
    from inference.benchmarks.nest import load

    benchmark = load(snapshot.folder(run))
    fresh = False
    for name, place in predictions.items():
        if not place.finished:
            fresh = True
            with place.lock():
                place.sweep()
                asyncio.run(_predict(run, name, place, benchmark))
    where = folder(run)
    assert where is not None
    if not finished(run):
        fresh = True
        _report(run, where, benchmark, predictions)
    count = sum(1 for _ in predictions)
    return Done("score", where.name, str(where), count, count, fresh)


async def _predict(run: Run, name: str, place: StageDir, benchmark: Benchmark) -> None:
    from flows.wiring import inference_deps
    from inference import predict
    from inference.segmenters.registry import make

    started = time.monotonic()
    size = run.config.score.shard_samples
    count = -(-len(benchmark) // size)
    async with inference_deps(run) as deps:
        runner = make(name, run.config, deps=deps)
        with console.bar(name, len(benchmark)) as bar:
            for index, samples in enumerate(_chunks(benchmark, size)):
                if not place.shard_done(index):
                    began = time.monotonic()
                    items = [sample.item() for sample in samples]
                    kept, timings = await predict.run(items, run.config.score, deps=predict.PredictDeps(runner))
                    told = {**clock(began), "timings": [timing.model_dump(mode="json") for timing in timings]}
                    place.commit_shard(index, kept, [], run=told)
                bar.step(len(samples))
    predictions, _ = place.read_shards(Prediction, count)
    place.commit(predictions, [], stage="predict", found=len(benchmark), run=clock(started))


def _chunks(benchmark: Benchmark, size: int) -> Iterator[list[BenchmarkSample]]:
    """Samples in the benchmark's order; their pictures are decoded only where they are used."""
    samples = iter(benchmark)
    while chunk := list(itertools.islice(samples, size)):
        yield chunk


def _report(run: Run, where: Path, benchmark: Benchmark, predictions: Mapping[str, StageDir]) -> None:
    from inference.metrics.score import score
    from inference.report.write import write

    truths, notes = known_truth(run)
    report = score(
        benchmark,
        {name: place.iterate(Prediction) for name, place in predictions.items()},
        convention=run.config.score.convention,
        truths=truths,
        descriptions={"snapshot": "the snapshot's own masks"},
        notes=notes,
    )
    with committed_directory(where) as temporary:
        stored = {name: place.read(Prediction) for name, place in predictions.items()}
        write(report, temporary, benchmark=benchmark, predictions=stored, truths=truths)


def known_truth(run: Run) -> tuple[dict[str, Any], Sequence[str]]:
    """Masks that are known from elsewhere, where the configuration names such a source: the bundled sample week."""
    if run.config.score.known_truth != "sample":
        return {}, ()
    from flows.sample.scoring import NOTES, truth_by_sample

    return {"known truth": truth_by_sample(snapshot.folder(run))}, NOTES


def report(run: Run) -> ScoreReport | None:
    where = folder(run)
    if where is None or not (where / "report.json").is_file():
        return None
    return ScoreReport.read(json.loads((where / "report.json").read_text(encoding="utf-8")))


def table(run: Run) -> str:
    """The score table in plain text, "" if there is none."""
    from inference.report.text import terminal

    found = report(run)
    return terminal(found) if found else ""


def figures(run: Run) -> list[dict[str, Any]]:
    """The overall rows as plain values."""
    found = report(run)
    return [row.model_dump(mode="json") for row in found.rows if not row.split] if found else []

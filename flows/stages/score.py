"""Score: segmenters over a snapshot or any other benchmark, then the report. Scoring never waits for a push.

Predictions are kept per segmenter and key, so a new segmenter costs only its own run, and a report is only counting.
A window's own news is what ROSE searches by default; a foreign benchmark has no such index.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.core.schema import Prediction
from engine.core.store import Home, StageDir, committed_directory, sha256_file, stage_key
from flows import judging, novelty, sealed
from flows.run import Run, weights_of
from flows.stages import snapshot
from flows.stages.base import Done

if TYPE_CHECKING:
    from inference.benchmarks.base import Benchmark

#: Raised whenever the figures or the report's pages would differ for the same predictions.
REPORT_VERSION = "2"
#: Folder of a report that can be put beside the data: the report and its predictions.
PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Task:
    """What is scored: a named benchmark with the digest of its data, and the window whose news may be searched."""

    name: str
    digest: str
    open: Callable[[], Benchmark]
    config: Config
    home: Home
    run: Run | None = None

    @property
    def weights(self) -> Path:
        return weights_of(self.config, self.home)


def task_of(run: Run) -> Task | None:
    """The window's snapshot as a task; None while there is no snapshot of this configuration, or where it gives too
    few rows for one and another configuration's lies in its place."""
    folder = snapshot.folder(run)
    if snapshot.current(run) is None:
        return None

    def load() -> Benchmark:
        from inference.benchmarks.nest import load

        return load(folder, cutoff_lag_days=run.config.score.cutoff_lag_days)

    return Task(run.snapshot_name, sha256_file(folder / "snapshot.json"), load, run.config, run.home, run)


def task_for(text: str, config: Config) -> Task:
    """Any benchmark that a text names, see `inference.benchmarks.registry`. Raises `ConfigError` for an unknown one."""
    from inference.benchmarks.registry import open_benchmark

    home = Home(config.home)
    found = open_benchmark(text, snapshots=home.snapshot("x").parent)
    name = re.sub(r"[^\w.+-]", "_", found.name)
    return Task(name, found.digest, lambda: found, config, home)


def places(task: Task) -> dict[str, StageDir]:
    """Where each segmenter's predictions lie, by its label in the report, in the configuration's order."""
    from flows.wiring import index_digest
    from inference.predict import VERSION
    from inference.segmenters.registry import check_settings, segmenter_key

    check_settings(task.config)
    search = index_digest(task.run) if task.run is not None else ""
    found: dict[str, StageDir] = {}
    for name in task.config.score.segmenters:
        told = segmenter_key(name, task.config, weights_dir=task.weights, search=search)
        told["cutoff_lag_days"] = task.config.score.cutoff_lag_days
        key = stage_key("predict", VERSION, told, [task.digest])
        label = label_of(name)
        if label in found:
            raise ConfigError(f"two segmenters are called '{label}': rename one of the files")
        found[label] = task.home.predictions(task.name, label, key)
    return found


def label_of(name: str) -> str:
    """The name a segmenter has in reports: files are called by their own name, not by where they lie here."""
    head, colon, rest = name.partition(":")
    return f"files:{Path(rest).name}" if colon and head == "files" else name


def place(task: Task) -> Path | None:
    """Where the report lies; None while predictions are missing."""
    predictions = places(task)
    if not predictions or not all(found.finished for found in predictions.values()):
        return None
    inputs = [digest for found in predictions.values() for digest in found.digests()]
    config = {"score": task.config.score.keyed(), "data": task.digest}
    if labels := novelty.digest(task):
        config["novelty"] = labels
    if judge := judging.key_of(task):
        config["judge"] = judge
    return task.home.report(task.name, stage_key("score", REPORT_VERSION, config, inputs))


def folder(run: Run) -> Path | None:
    """Where the window's report lies; None while it cannot be there."""
    task = task_of(run)
    return place(task) if task is not None else None


def finished(run: Run) -> bool:
    where = folder(run)
    return where is not None and (where / "report.json").is_file()


def do(run: Run) -> Done:
    """Predict and score the window's snapshot unless that is done."""
    if snapshot.manifest(snapshot.folder(run)) is None:
        return Done("score", "", "", 0, 0, False, "no snapshot, nothing to score")
    if not run.config.score.segmenters:
        return Done("score", "", "", 0, 0, False, "[score] segmenters is empty, nothing is scored")
    task = task_of(run)
    if task is None and (thin := snapshot.thin_note(run)):
        return Done("score", "", "", 0, 0, False, thin)
    if task is None:
        raise ConfigError(f"the snapshot of {run.window.label} is not of this configuration: run 'nest snapshot' first")
    return do_task(task)


def do_task(task: Task) -> Done:
    """Predict and score unless that is done."""
    from flows.stages.predict import check_files, predict_all

    benchmark = task.open()
    if not task.config.score.segmenters:
        raise ConfigError("no segmenter is named: set [score] segmenters or give --segmenter")
    predictions = places(task)
    for where in predictions.values():
        _drop_parts(where, len(benchmark))
    asyncio.run(_try_all(task, [n for n in task.config.score.segmenters if not predictions[label_of(n)].finished]))
    fresh = False
    for name in task.config.score.segmenters:
        where = predictions[label_of(name)]
        if not where.finished:
            fresh = True
            check_files(name, benchmark)
            with where.lock():
                where.sweep()
                asyncio.run(predict_all(task, name, where, benchmark))
    report_at = place(task)
    assert report_at is not None
    if not (report_at / "report.json").is_file():
        fresh = True
        shutil.rmtree(report_at, ignore_errors=True)  # a folder whose report was lost is no report
        _report(task, report_at, benchmark, predictions)
    return Done("score", report_at.name, str(report_at), len(predictions), len(predictions), fresh)


def _drop_parts(where: StageDir, samples: int) -> None:
    """Predictions of the first samples alone lay under the whole's key in earlier versions: they are made anew."""
    if where.finished and where.funnel().found < samples:
        with where.lock():
            shutil.rmtree(where.path)


async def _try_all(task: Task, names: Sequence[str]) -> None:
    """Make every segmenter once before the first one works: a missing key or search is told at once."""
    from flows.evaluating import inference_deps
    from inference.segmenters.registry import make

    if len(names) < 2:
        return
    for name in names:
        async with inference_deps(task.config, task.home, task.run, name=name) as deps:
            make(name, task.config, deps=deps)


def missing(run: Run, name: str) -> list[int]:
    """Shards of a segmenter's predictions over the window's snapshot that are not made yet, for whoever shares them."""
    from flows.stages import predict

    task = task_of(run)
    if task is None:
        return []
    return predict.missing(places(task)[label_of(name)], predict.shard_count(task, task.open()))


def do_shards(run: Run, name: str, indexes: Sequence[int]) -> int:
    """Predict these shards of the window's snapshot; returns how many samples were predicted here."""
    from flows.stages import predict

    task = task_of(run)
    if task is None:
        return 0
    where = places(task)[label_of(name)]
    if where.finished:
        return 0
    return asyncio.run(predict.do_shards(task, name, where, task.open(), indexes))


def _report(task: Task, where: Path, benchmark: Benchmark, predictions: dict[str, StageDir]) -> None:
    from inference.metrics.score import score
    from inference.report.costs import ModuleCost, write_costs
    from inference.report.publish import publish
    from inference.report.write import write

    truths, notes = known_truth(task)
    benchmark = novelty.labelled(task, benchmark)
    streams = {name: found.iterate(Prediction) for name, found in predictions.items()}
    judged = asyncio.run(judging.verdicts(task, benchmark, streams))
    report = score(
        benchmark,
        {name: found.iterate(Prediction) for name, found in predictions.items()},
        convention=task.config.score.convention,
        truths=truths,
        descriptions={"snapshot": "the snapshot's own masks"},
        cutoffs=task.config.score.cutoffs,
        novelty_model=task.config.score.novelty_model,
        judged={name: found.verdicts for name, found in judged.items()},
        notes=(*notes, *judging.notes(task, judged)),
    )
    report = sealed.mark(report, task.home.root)
    costs = [ModuleCost(**told) for found in predictions.values() for told in found.run().get("costs", ())]
    with committed_directory(where) as temporary:
        # read anew for each: masks of a whole benchmark are not held at a time
        streams = {name: found.iterate(Prediction) for name, found in predictions.items()}
        write(report, temporary, benchmark=benchmark, predictions=streams, truths=truths, costs=bool(costs))
        if costs:
            write_costs(costs, temporary)
        publish(report, {name: found.iterate(Prediction) for name, found in predictions.items()}, temporary / PUBLISHED)


def known_truth(task: Task) -> tuple[dict[str, Any], Sequence[str]]:
    """Masks that are known from elsewhere, where the configuration names such a source: the bundled sample week."""
    if task.config.score.known_truth != "sample" or task.run is None:
        return {}, ()
    from flows.sample.scoring import NOTES, truth_by_sample

    return {"known truth": truth_by_sample(snapshot.folder(task.run))}, NOTES

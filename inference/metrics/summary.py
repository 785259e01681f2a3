"""From the walk's columns to a `ScoreReport`: answers, per-pair records, warnings; rows are made in `rows`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine.core.schema import (
    AnswerScores,
    Convention,
    ScoreReport,
    ScoreRow,
    SegmenterInfo,
    TruthInfo,
    UnitScores,
)
from inference.benchmarks.base import Benchmark
from inference.metrics.answers import exact, token_f1
from inference.metrics.baselines import BASELINES
from inference.metrics.bootstrap import Resampler, clusters
from inference.metrics.conventions import CONVENTIONS, SAID
from inference.metrics.rows import Scored, comparisons, parts_of, rows_of
from inference.metrics.scorestring import score_string
from inference.metrics.units import FAILURES, STATUS, Reals
from inference.metrics.walk import Walk

NEAR_BASELINE = 0.02


def summarise(
    benchmark: Benchmark,
    walk: Walk,
    *,
    convention: Convention,
    seed: int,
    resamples: int,
    size_px: int | None,
    novelty_model: str,
    judged: Mapping[str, Mapping[str, bool]],
    cutoffs: Mapping[str, str],
    notes: Sequence[str],
    descriptions: Mapping[str, str],
) -> ScoreReport:
    """The report of a finished walk; see `score` for the arguments."""
    cluster = clusters(walk.image_keys)
    resampler = Resampler.of(cluster, seed=seed, resamples=resamples)
    names = [joiner.name for joiner in walk.joiners]
    answers = {name: _answers(name, walk, judged.get(name)) for name in names}
    scored = [_columns(name, truth, walk, answers.get(name)) for name, truth in walk.tallies]
    parts = dict(parts_of(walk))
    rows = [row for one in scored for row in rows_of(one, parts, convention, resampler)]
    model = novelty_model or _only_novelty(parts)
    info = tuple(
        SegmenterInfo(
            name=name,
            models=walk.models.get(name, ()),
            predictions_sha256=walk.digests.get(name, ""),
            knowledge_cutoff=cutoffs.get(name, ""),
        )
        for name in names
    )
    return ScoreReport(
        dataset=benchmark.name,
        revision=benchmark.revision,
        digest=benchmark.digest,
        window=benchmark.window,
        convention=convention,
        conventions=dict(SAID),
        size_px=size_px,
        seed=seed,
        resamples=resamples,
        clusters=int(cluster.max()) + 1 if cluster.size else 0,
        base_model=model,
        score_string=score_string(benchmark, convention=convention, base_model=model, size_px=size_px, seed=seed),
        truths=tuple(
            TruthInfo(name=name, description=descriptions.get(name, "")) for name in (walk.truth_name, *walk.others)
        ),
        segmenters=info,
        rows=tuple(rows),
        comparisons=tuple(comparisons(scored, convention, resampler)),
        samples=tuple(
            text.model_copy(update={"cluster": int(number)}) for text, number in zip(walk.samples, cluster, strict=True)
        ),
        units=tuple(_unit_scores(one, convention) for one in scored if one.kind == "segmenter"),
        answers=tuple(found for found in answers.values() if any(one is not None for one in found.answer)),
        notes=(*benchmark.notes, *notes),
        warnings=tuple(_warnings(rows, walk.truth_name)),
        versions=_versions(),
    )


def _answers(name: str, walk: Walk, judged: Mapping[str, bool] | None) -> AnswerScores:
    given = walk.answers[name]
    correct: list[float | None] = []
    f1: list[float | None] = []
    for answer, sample, aliases in zip(given, walk.samples, walk.aliases, strict=True):
        names = (sample.answer, *aliases)
        correct.append(None if answer is None else float(exact(answer, names)))
        f1.append(None if answer is None else token_f1(answer, names))
    verdicts = () if judged is None else tuple(_verdict(judged, sample.id) for sample in walk.samples)
    return AnswerScores(
        segmenter=name,
        answer=tuple(given),
        correct=tuple(correct),
        f1=tuple(f1),
        judged=verdicts,
    )


def _verdict(judged: Mapping[str, bool], sample_id: str) -> float | None:
    found = judged.get(sample_id)
    return None if found is None else float(found)


def _columns(name: str, truth: str, walk: Walk, answers: AnswerScores | None) -> Scored:
    count = len(walk.samples)
    empty: Reals = np.full(count, np.nan)
    if answers is None:
        units = walk.tallies[name, truth].units(correct=empty, f1=empty, judged=empty)
    else:
        units = walk.tallies[name, truth].units(
            correct=np.array(answers.correct, dtype=np.float64),
            f1=np.array(answers.f1, dtype=np.float64),
            judged=np.array(answers.judged, dtype=np.float64) if answers.judged else empty,
        )
    return Scored(name, "baseline" if name in BASELINES else "segmenter", truth, units)


def _only_novelty(parts: Mapping[str, object]) -> str:
    models = [tag.removeprefix("novelty:") for tag in parts if tag.startswith("novelty:")]
    return models[0] if len(models) == 1 else ""


def _unit_scores(one: Scored, convention: Convention) -> UnitScores:
    units = one.units
    effective = CONVENTIONS[convention](units)
    return UnitScores(
        segmenter=one.name,
        truth=one.truth,
        sample=tuple(units.sample.tolist()),
        image=tuple(units.image.tolist()),
        status=tuple(STATUS[value] for value in units.status),
        failure=tuple("" if kind < 0 else FAILURES[kind] for kind in units.failure),
        intersection=tuple(units.intersection.tolist()),
        union=tuple(units.union.tolist()),
        target=tuple(units.target.tolist()),
        predicted=tuple(units.predicted.tolist()),
        ignored=tuple(units.ignored.tolist()),
        predicted_ignored=tuple(units.predicted_ignored.tolist()),
        pixels=tuple(units.pixels.tolist()),
        said_none=tuple(units.said_none.astype(int).tolist()),
        iou=tuple(
            float(value) if counted else None for value, counted in zip(effective.iou, effective.counted, strict=True)
        ),
    )


def _warnings(rows: Sequence[ScoreRow], truth: str) -> Iterator[str]:
    whole = {row.segmenter: row for row in rows if not row.split and row.truth == truth}
    floors = {name: whole[name].value("giou") for name in BASELINES if name in whole}
    for name, row in whole.items():
        if row.kind != "segmenter":
            continue
        value = row.value("giou")
        for base, floor in floors.items():
            if value is not None and floor is not None and abs(value - floor) < NEAR_BASELINE:
                yield (
                    f"{name} scores {100 * value:.1f} gIoU, as {base} does ({100 * floor:.1f}): "
                    "were its weights loaded?"
                )
        if row.failed or row.missing:
            kinds = ", ".join(f"{count} {kind}" for kind, count in row.failures.items())
            yield (
                f"{name}: {row.failed} pairs failed{f' ({kinds})' if kinds else ''} and {row.missing} have no "
                "prediction; they are in no figure but the strict ones"
            )
    for row in whole.values():
        if row.kind == "segmenter" and row.scored and row.value("giou") is None:
            yield f"{row.segmenter}: nothing could be counted"


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("nest-data-engine", "numpy", "opencv-python-headless", "pycocotools"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found

"""From the walk's columns to a `ScoreReport`: answers, per-pair records, warnings; rows are made in `rows`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine.core.schema import (
    AnswerScores,
    Convention,
    PackedTexts,
    SampleText,
    ScoreReport,
    ScoreRow,
    SegmenterInfo,
    TruthInfo,
    UnitScores,
)
from inference.benchmarks.base import Benchmark
from inference.metrics.baselines import BASELINES
from inference.metrics.bootstrap import Resampler
from inference.metrics.conventions import CONVENTIONS, SAID
from inference.metrics.rows import Scored, comparisons, rows_of
from inference.metrics.scorestring import score_string
from inference.metrics.units import FAILURES, STATUS, Flags, Ints, Reals
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
    cluster = walk.samples.clusters()
    resampler = Resampler.of(cluster, seed=seed, resamples=resamples)
    names = [joiner.name for joiner in walk.joiners]
    answers = {name: _answers(name, walk, judged.get(name)) for name in names}
    parts = dict(walk.samples.parts())
    rows: list[ScoreRow] = []
    scored: list[Scored] = []
    for one in _columns(walk, answers):
        rows += rows_of(one, parts, convention, resampler)
        if one.kind == "segmenter":
            scored.append(one)
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
        samples=PackedTexts(_samples(walk, cluster)),
        units=tuple(_unit_scores(one, convention) for one in scored),
        answers=tuple(_answer_scores(name, walk, found) for name, found in answers.items() if walk.answers[name].given),
        notes=(*benchmark.notes, *notes),
        warnings=tuple(_warnings(rows, walk.truth_name)),
        versions=_versions(),
    )


def _samples(walk: Walk, cluster: Ints) -> Iterator[SampleText]:
    """The samples' texts; they came from records that were checked."""
    fields = set(SampleText.model_fields)
    for text, number in zip(walk.samples, cluster.tolist(), strict=True):
        yield SampleText.model_construct(
            fields, id=text.id, question=text.question, answer=text.answer, cluster=number, tags=text.tags
        )


def _answers(name: str, walk: Walk, judged: Mapping[str, bool] | None) -> tuple[Reals, Reals, Reals]:
    """Per sample whether the answer is right, its F1, and a judge's verdict; NaN for none."""
    count = walk.samples.count
    verdicts: Reals = np.full(count, np.nan)
    if judged is not None:
        for place, text in enumerate(walk.samples):
            if text.id in judged:
                verdicts[place] = judged[text.id]
    return (*walk.answers[name].columns(count), verdicts)


def _answer_scores(name: str, walk: Walk, found: tuple[Reals, Reals, Reals]) -> AnswerScores:
    correct, f1, judged = (tuple(None if np.isnan(one) else float(one) for one in column) for column in found)
    return AnswerScores(
        segmenter=name,
        answer=tuple(walk.answers[name].texts(walk.samples.count)),
        correct=correct,
        f1=f1,
        judged=judged if any(one is not None for one in judged) else (),
    )


def _columns(walk: Walk, answers: Mapping[str, tuple[Reals, Reals, Reals]]) -> Iterator[Scored]:
    for truth, pairs in walk.pairs.items():
        for name, found in answers.items():
            yield Scored(name, "segmenter", truth, pairs.units(walk.tallies[name, truth], found))
        for name in BASELINES:
            yield Scored(name, "baseline", truth, pairs.baseline(name, walk.samples.count))


def _only_novelty(parts: Mapping[str, object]) -> str:
    models = [tag.removeprefix("novelty:") for tag in parts if tag.startswith("novelty:")]
    return models[0] if len(models) == 1 else ""


def _unit_scores(one: Scored, convention: Convention) -> UnitScores:
    units = one.units
    effective = CONVENTIONS[convention](units)
    return UnitScores(
        segmenter=one.name,
        truth=one.truth,
        sample=_whole(units.sample),
        image=_whole(units.image),
        status=tuple(STATUS[value] for value in units.status),
        failure=tuple("" if kind < 0 else FAILURES[kind] for kind in units.failure),
        intersection=_whole(units.intersection),
        union=_whole(units.union),
        target=_whole(units.target),
        predicted=_whole(units.predicted),
        ignored=_whole(units.ignored),
        predicted_ignored=_whole(units.predicted_ignored),
        pixels=_whole(units.pixels),
        said_none=_whole(units.said_none),
        iou=tuple(
            float(value) if counted else None for value, counted in zip(effective.iou, effective.counted, strict=True)
        ),
    )


def _whole(values: Ints | Flags) -> array[int]:
    return array("q", values.astype(np.int64).tobytes())


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

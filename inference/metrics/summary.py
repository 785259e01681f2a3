"""From the walk's columns to a `ScoreReport`: rows for everything and for each part, intervals, comparisons.

Parts are the values of the samples' tags (a tag with one value or more than `MAX_PARTS` is no split) and the size
of the target in the image. Comparisons between segmenters are paired and use the pairs that both answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

import inference.metrics.builtin  # noqa: F401  (registers the metrics)
from engine.core.schema import (
    AnswerScores,
    Comparison,
    Convention,
    Estimate,
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
from inference.metrics.registry import METRICS, sums
from inference.metrics.scorestring import score_string
from inference.metrics.units import FAILURES, SCORED, STATUS, Flags, Reals, Units
from inference.metrics.walk import Walk

MAX_PARTS = 12
SIZES = ((0.0, "no target"), (0.02, "small (up to 2 %)"), (0.1, "medium (2 to 10 %)"), (1.0, "large (over 10 %)"))
NEAR_BASELINE = 0.02
COMPARED = ("giou", "ciou")


@dataclass(frozen=True, slots=True)
class _Scored:
    """A segmenter's or baseline's columns against one truth."""

    name: str
    kind: Literal["segmenter", "baseline"]
    truth: str
    units: Units


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
    parts = dict(_parts(walk))
    rows = [row for one in scored for row in _rows(one, parts, convention, resampler)]
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
        comparisons=tuple(_comparisons(scored, convention, resampler)),
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


def _columns(name: str, truth: str, walk: Walk, answers: AnswerScores | None) -> _Scored:
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
    return _Scored(name, "baseline" if name in BASELINES else "segmenter", truth, units)


def _parts(walk: Walk) -> Iterator[tuple[str, dict[str, Flags]]]:
    """Per tag its values, each with a flag per sample."""
    for tag in sorted({tag for sample in walk.samples for tag in sample.tags}):
        values = np.array([sample.tags.get(tag, "") for sample in walk.samples], dtype=object)
        found = sorted(set(values) - {""})
        if 2 <= len(found) <= MAX_PARTS or (tag.startswith("novelty:") and found):
            yield tag, {value: values == value for value in found}


def _only_novelty(parts: Mapping[str, object]) -> str:
    models = [tag.removeprefix("novelty:") for tag in parts if tag.startswith("novelty:")]
    return models[0] if len(models) == 1 else ""


def _rows(
    one: _Scored, parts: Mapping[str, Mapping[str, Flags]], convention: Convention, resampler: Resampler
) -> Iterator[ScoreRow]:
    if not len(one.units):
        return
    yield _row(one, "", "", np.ones(len(one.units), dtype=np.bool_), convention, resampler)
    for tag, values in parts.items():
        for value, flags in values.items():
            yield _row(one, tag, value, flags[one.units.sample], convention, resampler)
    share = one.units.target / np.maximum(one.units.pixels, 1)
    bucket = np.searchsorted([limit for limit, _ in SIZES], share, side="left")
    for place, (_, name) in enumerate(SIZES):
        if (bucket == place).any():
            yield _row(one, "size", name, bucket == place, convention, resampler)


def _row(one: _Scored, split: str, part: str, flags: Flags, convention: Convention, resampler: Resampler) -> ScoreRow:
    units = one.units.select(flags)
    lost = units.status != SCORED
    failures = {
        FAILURES[kind]: int(np.count_nonzero(units.failure == kind))
        for kind in sorted(set(units.failure[units.status == STATUS.index("failed")].tolist()))
    }
    figures = _figures(units, convention, resampler, everything=True)
    for other in CONVENTIONS:
        if other != convention:
            found = _figures(units, other, resampler, everything=False)
            figures.update({f"{other}:{name}": value for name, value in found.items()})
    strict = _figures(units.strict(), convention, resampler, everything=False) if lost.any() else {}
    return ScoreRow(
        segmenter=one.name,
        kind=one.kind,
        truth=one.truth,
        split=split,
        part=part,
        samples=len(np.unique(units.sample)),
        units=len(units),
        scored=int(np.count_nonzero(~lost)),
        failed=int(np.count_nonzero(units.status == STATUS.index("failed"))),
        missing=int(np.count_nonzero(units.status == STATUS.index("missing"))),
        failures=failures,
        figures=figures,
        strict=strict,
    )


def _figures(units: Units, convention: Convention, resampler: Resampler, *, everything: bool) -> dict[str, Estimate]:
    effective = CONVENTIONS[convention](units)
    figures = {}
    for name, found in METRICS.items():
        if everything or found.headline:
            top, bottom = sums(found, effective)
            if bottom.any():
                figures[name] = resampler.estimate(units.sample, top, bottom)
            elif found.headline:
                figures[name] = Estimate(value=None)
    return figures


def _comparisons(scored: Sequence[_Scored], convention: Convention, resampler: Resampler) -> Iterator[Comparison]:
    segmenters = [one for one in scored if one.kind == "segmenter"]
    # the later one minus the earlier, so that a base named first is what the gain is over
    for second, first in combinations(segmenters, 2):
        if first.truth != second.truth:
            continue
        both = (first.units.status == SCORED) & (second.units.status == SCORED)
        if not both.any():
            continue
        a = CONVENTIONS[convention](first.units.select(both))
        b = CONVENTIONS[convention](second.units.select(both))
        for name in COMPARED:
            difference, p_value = resampler.difference(a.units.sample, sums(METRICS[name], a), sums(METRICS[name], b))
            yield Comparison(
                first=first.name,
                second=second.name,
                truth=first.truth,
                metric=name,
                units=int(np.count_nonzero(both)),
                difference=difference,
                p_value=p_value,
            )


def _unit_scores(one: _Scored, convention: Convention) -> UnitScores:
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

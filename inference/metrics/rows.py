"""Rows of a report: the figures of everything and of each part, and paired comparisons between segmenters.

Parts are the values of the samples' tags (a tag with one value or more than `MAX_PARTS` is no split) and the size of
the target in the image. Comparisons use the pairs that both segmenters answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

import inference.metrics.builtin  # noqa: F401  (registers the metrics)
from engine.core.schema import Comparison, Convention, Estimate, ScoreRow
from inference.metrics.bootstrap import Resampler
from inference.metrics.conventions import CONVENTIONS
from inference.metrics.registry import METRICS, sums
from inference.metrics.units import FAILURES, SCORED, STATUS, Flags, Units
from inference.metrics.walk import Walk

MAX_PARTS = 12
SIZES = ((0.0, "no target"), (0.02, "small (up to 2 %)"), (0.1, "medium (2 to 10 %)"), (1.0, "large (over 10 %)"))
COMPARED = ("giou", "ciou")


@dataclass(frozen=True, slots=True)
class Scored:
    """A segmenter's or baseline's columns against one truth."""

    name: str
    kind: Literal["segmenter", "baseline"]
    truth: str
    units: Units


def parts_of(walk: Walk) -> Iterator[tuple[str, dict[str, Flags]]]:
    """Per tag its values, each with a flag per sample."""
    for tag in sorted({tag for sample in walk.samples for tag in sample.tags}):
        values = np.array([sample.tags.get(tag, "") for sample in walk.samples], dtype=object)
        found = sorted(set(values) - {""})
        if 2 <= len(found) <= MAX_PARTS or (tag.startswith("novelty:") and found):
            yield tag, {value: values == value for value in found}


def rows_of(
    one: Scored, parts: Mapping[str, Mapping[str, Flags]], convention: Convention, resampler: Resampler
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


def _row(one: Scored, split: str, part: str, flags: Flags, convention: Convention, resampler: Resampler) -> ScoreRow:
    units = one.units.select(flags)
    lost = units.status != SCORED
    failures = {
        FAILURES[kind]: int(np.count_nonzero(units.failure == kind))
        for kind in sorted(set(units.failure[units.status == STATUS.index("failed")].tolist()))
    }
    intervals = one.kind == "segmenter"
    figures = _figures(units, convention, resampler, everything=True, intervals=intervals)
    for other in CONVENTIONS:
        if other != convention:
            found = _figures(units, other, resampler, everything=False, intervals=intervals)
            figures.update({f"{other}:{name}": value for name, value in found.items()})
    strict = {}
    if lost.any():
        strict = _figures(units.strict(), convention, resampler, everything=False, intervals=intervals)
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


def _figures(
    units: Units, convention: Convention, resampler: Resampler, *, everything: bool, intervals: bool
) -> dict[str, Estimate]:
    effective = CONVENTIONS[convention](units)
    columns = {name: sums(found, effective) for name, found in METRICS.items() if everything or found.headline}
    # a metric that has nothing to count in this data is left out, but for the headline ones
    columns = {name: pair for name, pair in columns.items() if pair[1].any() or METRICS[name].headline}
    found = resampler.estimates(units.sample, list(columns.values()), intervals=intervals)
    return dict(zip(columns, found, strict=True))


def comparisons(scored: Sequence[Scored], convention: Convention, resampler: Resampler) -> Iterator[Comparison]:
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

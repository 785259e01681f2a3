"""Rows of a report: the figures of everything and of each part, and paired comparisons between segmenters.

Parts are the values of the samples' tags (see `texts`) and the size of the target in the image. Comparisons use the
pairs that both segmenters answered.
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
from inference.metrics.units import FAILURES, SCORED, STATUS, Flags, Reals, Units

SIZES = ((0.0, "no target"), (0.02, "small (up to 2 %)"), (0.1, "medium (2 to 10 %)"), (1.0, "large (over 10 %)"))
COMPARED = ("giou", "ciou")


@dataclass(frozen=True, slots=True)
class Scored:
    """A segmenter's or baseline's columns against one truth."""

    name: str
    kind: Literal["segmenter", "baseline"]
    truth: str
    units: Units


@dataclass(frozen=True, slots=True)
class _Part:
    """Pairs that make a row, and the figures asked of them: by name the columns of sums, for the row and counted
    strictly."""

    split: str
    part: str
    units: Units
    figures: dict[str, tuple[Reals, Reals]]
    strict: dict[str, tuple[Reals, Reals]]


def rows_of(
    one: Scored, parts: Mapping[str, Mapping[str, Flags]], convention: Convention, resampler: Resampler
) -> Iterator[ScoreRow]:
    """The rows of one segmenter against one truth: everything, then each part of the data.

    All figures of all rows are resampled together, which is what makes many of them cheap.
    """
    if not len(one.units):
        return
    found = [_part(split, part, one.units.select(flags), convention) for split, part, flags in _flags(one.units, parts)]
    asked = [(part.units.sample, *sums) for part in found for sums in (*part.figures.values(), *part.strict.values())]
    estimates = iter(resampler.estimates(asked, intervals=one.kind == "segmenter"))
    for part in found:
        figures = {name: next(estimates) for name in part.figures}
        yield _row(one, part, figures, {name: next(estimates) for name in part.strict})


def _flags(units: Units, parts: Mapping[str, Mapping[str, Flags]]) -> Iterator[tuple[str, str, Flags]]:
    yield "", "", np.ones(len(units), dtype=np.bool_)
    for tag, values in parts.items():
        for value, flags in values.items():
            yield tag, value, flags[units.sample]
    share = units.target / np.maximum(units.pixels, 1)
    bucket = np.searchsorted([limit for limit, _ in SIZES], share, side="left")
    for place, (_, name) in enumerate(SIZES):
        if (bucket == place).any():
            yield "size", name, bucket == place


def _part(split: str, part: str, units: Units, convention: Convention) -> _Part:
    figures = _figures(units, convention, everything=True)
    for other in CONVENTIONS:
        if other != convention:
            found = _figures(units, other, everything=False)
            figures.update({f"{other}:{name}": value for name, value in found.items()})
    lost = bool((units.status != SCORED).any())
    return _Part(split, part, units, figures, _figures(units.strict(), convention, everything=False) if lost else {})


def _row(one: Scored, part: _Part, figures: dict[str, Estimate], strict: dict[str, Estimate]) -> ScoreRow:
    units = part.units
    failed, missing = (units.status == STATUS.index(name) for name in ("failed", "missing"))
    return ScoreRow(
        segmenter=one.name,
        kind=one.kind,
        truth=one.truth,
        split=part.split,
        part=part.part,
        samples=len(np.unique(units.sample)),
        units=len(units),
        scored=int(np.count_nonzero(units.status == SCORED)),
        failed=int(np.count_nonzero(failed)),
        missing=int(np.count_nonzero(missing)),
        failures={
            FAILURES[kind]: int(np.count_nonzero(units.failure == kind))
            for kind in sorted(set(units.failure[failed].tolist()))
        },
        figures=figures,
        strict=strict,
    )


def _figures(units: Units, convention: Convention, *, everything: bool) -> dict[str, tuple[Reals, Reals]]:
    effective = CONVENTIONS[convention](units)
    columns = {name: sums(found, effective) for name, found in METRICS.items() if everything or found.headline}
    # a metric that has nothing to count in this data is left out, but for the headline ones
    return {name: pair for name, pair in columns.items() if pair[1].any() or METRICS[name].headline}


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

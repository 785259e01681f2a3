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
from engine.core.schema import Comparison, Convention, ScoreRow
from inference.metrics.bootstrap import Folded, Resampler
from inference.metrics.conventions import CONVENTIONS
from inference.metrics.registry import METRICS, sums
from inference.metrics.units import FAILURES, SCORED, STATUS, Flags, Units

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
    """A row without its figures, and what these are ratios of: by name the sums by group, for the row and counted
    strictly. The columns themselves are not kept: there are many parts, and each is as long as its data."""

    row: ScoreRow
    figures: dict[str, Folded]
    strict: dict[str, Folded]


def rows_of(
    one: Scored, parts: Mapping[str, Mapping[str, Flags]], convention: Convention, resampler: Resampler
) -> Iterator[ScoreRow]:
    """The rows of one segmenter against one truth: everything, then each part of the data.

    All figures of all rows are resampled together, which is what makes many of them cheap.
    """
    if not len(one.units):
        return
    found = []
    for split, name, flags in _flags(one.units, parts):
        units = one.units.select(flags)
        found.append(_part(_row(one, split, name, units), units, convention, resampler))
    asked = [sums for part in found for sums in (*part.figures.values(), *part.strict.values())]
    estimates = iter(resampler.estimates(asked, intervals=one.kind == "segmenter"))
    for part in found:
        figures = {name: next(estimates) for name in part.figures}
        yield part.row.model_copy(
            update={"figures": figures, "strict": {name: next(estimates) for name in part.strict}}
        )


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


def _part(row: ScoreRow, units: Units, convention: Convention, resampler: Resampler) -> _Part:
    figures = _figures(units, convention, resampler, everything=True)
    for other in CONVENTIONS:
        if other != convention:
            found = _figures(units, other, resampler, everything=False)
            figures.update({f"{other}:{name}": value for name, value in found.items()})
    lost = bool((units.status != SCORED).any())
    strict = _figures(units.strict(), convention, resampler, everything=False) if lost else {}
    return _Part(row, figures, strict)


def _row(one: Scored, split: str, part: str, units: Units) -> ScoreRow:
    failed, missing = (units.status == STATUS.index(name) for name in ("failed", "missing"))
    return ScoreRow(
        segmenter=one.name,
        kind=one.kind,
        truth=one.truth,
        split=split,
        part=part,
        samples=len(np.unique(units.sample)),
        units=len(units),
        scored=int(np.count_nonzero(units.status == SCORED)),
        failed=int(np.count_nonzero(failed)),
        missing=int(np.count_nonzero(missing)),
        failures={
            FAILURES[kind]: int(np.count_nonzero(units.failure == kind))
            for kind in sorted(set(units.failure[failed].tolist()))
        },
    )


def _figures(units: Units, convention: Convention, resampler: Resampler, *, everything: bool) -> dict[str, Folded]:
    effective = CONVENTIONS[convention](units)
    folded = {}
    for name, found in METRICS.items():
        if not (everything or found.headline):
            continue
        top, bottom = sums(found, effective)
        # a metric that has nothing to count in this data is left out, but for the headline ones
        if bottom.any() or found.headline:
            folded[name] = resampler.folded(units.sample, top, bottom)
    return folded


def comparisons(scored: Sequence[Scored], convention: Convention, resampler: Resampler) -> Iterator[Comparison]:
    # the later one minus the earlier, so that a base named first is what the gain is over
    for second, first in combinations(scored, 2):
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

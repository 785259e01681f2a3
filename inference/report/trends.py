"""Scores over windows: whether a segmenter decays as the news moves away from what it knows.

Weeks differ in difficulty, so that a segmenter's own line says little. A few frozen anchor segmenters score every
window; a trend is the difference to their mean on the same pairs. Differences are pooled over four windows, and the
latest pool is compared with the earliest: it is called decay (or gain) only when the 95 % interval, by image
clusters, leaves out zero. Figures of windows after a knowledge cut-off are pooled over pairs, not over windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from engine.core.errors import ConfigError
from engine.core.schema import Estimate, ScoreReport, UnitScores, Window
from engine.core.windows import parse_window
from inference.metrics.bootstrap import Resampler
from inference.metrics.units import Ints, Reals

POOL = 4


@dataclass(frozen=True, slots=True)
class Trend:
    """A segmenter's difference to the anchors in the earliest and the latest pool of windows, in shares of one.

    `verdict` is decay, gain, "no change shown", or why nothing can be said.
    """

    segmenter: str
    windows: int
    early: Estimate
    late: Estimate
    change: Estimate
    verdict: str


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Per pair of all windows: IoU of a segmenter minus the anchors' mean, the window's place and the cluster."""

    gap: Reals
    window: Ints
    cluster: Ints


def by_window(reports: Sequence[ScoreReport]) -> list[tuple[Window, ScoreReport]]:
    """Reports with their windows, in order of date. Raises `ConfigError` for a window scored twice in one convention
    or for reports of different conventions."""
    found = sorted(((parse_window(report.window), report) for report in reports if report.window), key=_order)
    conventions = {report.convention for _, report in found}
    if len(conventions) > 1:
        raise ConfigError(f"reports of the conventions {', '.join(sorted(conventions))} cannot stand in one table")
    labels = [window.label for window, _ in found]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ConfigError(f"there are several reports of {', '.join(twice)}: give one of each window")
    return found


def trends(reports: Sequence[ScoreReport], anchors: Sequence[str], *, pool: int = POOL, seed: int = 0) -> list[Trend]:
    """The trend of every segmenter but the anchors, by name."""
    ordered = by_window(reports)
    names = sorted({info.name for _, report in ordered for info in report.segmenters} - set(anchors))
    return [_trend(name, anchors, ordered, pool, seed) for name in names]


def after_cutoff(
    reports: Sequence[ScoreReport], segmenter: str, cutoff: date, *, metric: str = "giou", seed: int = 0
) -> Estimate:
    """gIoU or cIoU over all pairs of windows that begin after a knowledge cut-off; None where there are none."""
    tops, bottoms, groups, offset = [], [], [], 0
    for window, report in by_window(reports):
        clusters, count = _clusters(report)
        units = _units(report, segmenter)
        if units is None or window.first <= cutoff:
            continue
        iou = _values(units)
        kept = np.isfinite(iou)
        if metric == "giou":
            tops.append(iou[kept])
            bottoms.append(np.ones(int(kept.sum())))
        else:
            tops.append(np.array(units.intersection, dtype=np.float64)[kept])
            bottoms.append(np.array(units.union, dtype=np.float64)[kept])
        groups.append(clusters[np.array(units.sample, dtype=np.int64)[kept]] + offset)
        offset += count
    if not tops:
        return Estimate(value=None)
    group = _dense(np.concatenate(groups))
    resampler = Resampler.of(np.arange(int(group.max(initial=-1)) + 1), seed=seed)
    return resampler.estimate(group, np.concatenate(tops), np.concatenate(bottoms))


def _order(one: tuple[Window, ScoreReport]) -> tuple[date, date]:
    return one[0].first, one[0].last


def _trend(
    name: str, anchors: Sequence[str], ordered: Sequence[tuple[Window, ScoreReport]], pool: int, seed: int
) -> Trend:
    pairs = _pairs(name, anchors, ordered)
    places = np.unique(pairs.window)
    none = Estimate(value=None)
    if not anchors:
        return Trend(name, len(places), none, none, none, "no anchors are named")
    if len(places) < 2 * pool:
        said = f"{len(places)} window{'s' * (len(places) != 1)} with the anchors, {2 * pool} are needed"
        return Trend(name, len(places), none, none, none, said)
    resampler = Resampler.of(np.arange(int(pairs.cluster.max()) + 1), seed=seed)
    early, late = (np.isin(pairs.window, chosen).astype(np.float64) for chosen in (places[:pool], places[-pool:]))
    change, _ = resampler.difference(pairs.cluster, (pairs.gap * late, late), (pairs.gap * early, early))
    return Trend(
        name,
        len(places),
        resampler.estimate(pairs.cluster, pairs.gap * early, early),
        resampler.estimate(pairs.cluster, pairs.gap * late, late),
        change,
        _verdict(change),
    )


def _verdict(change: Estimate) -> str:
    if change.low is None or change.high is None:
        return "too few images"
    if change.high < 0:
        return "decay"
    return "gain" if change.low > 0 else "no change shown"


def _pairs(name: str, anchors: Sequence[str], ordered: Sequence[tuple[Window, ScoreReport]]) -> _Pairs:
    gaps: list[Reals] = []
    windows: list[Ints] = []
    groups: list[Ints] = []
    offset = 0
    for place, (_, report) in enumerate(ordered):
        clusters, count = _clusters(report)
        own = _units(report, name)
        others = [_units(report, anchor) for anchor in anchors]
        if own is not None and others and all(other is not None for other in others):
            gap = _values(own) - np.mean([_values(other) for other in others if other is not None], axis=0)
            kept = np.isfinite(gap)
            gaps.append(gap[kept])
            windows.append(np.full(int(kept.sum()), place, dtype=np.int64))
            groups.append(clusters[np.array(own.sample, dtype=np.int64)[kept]] + offset)
        offset += count
    if not gaps:
        empty = np.zeros(0, dtype=np.int64)
        return _Pairs(np.zeros(0), empty, empty)
    return _Pairs(np.concatenate(gaps), np.concatenate(windows), _dense(np.concatenate(groups)))


def _clusters(report: ScoreReport) -> tuple[Ints, int]:
    """The cluster of each sample, and how many there are; samples of unknown cluster are one each."""
    known = np.array([sample.cluster for sample in report.samples], dtype=np.int64)
    if (known < 0).any():
        known = np.arange(len(known), dtype=np.int64)
    return known, int(known.max(initial=-1)) + 1


def _units(report: ScoreReport, segmenter: str) -> UnitScores | None:
    truth = report.truths[0].name
    return next((one for one in report.units if (one.segmenter, one.truth) == (segmenter, truth)), None)


def _values(units: UnitScores) -> Reals:
    return np.array([np.nan if iou is None else iou for iou in units.iou], dtype=np.float64)


def _dense(groups: Ints) -> Ints:
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def cutoffs(reports: Sequence[ScoreReport], told: Mapping[str, str] | None = None) -> Iterator[tuple[str, date]]:
    """Knowledge cut-offs by segmenter, from the reports or as told. Raises `ConfigError` for one that is no date."""
    found = {info.name: info.knowledge_cutoff for report in reports for info in report.segmenters}
    found.update(told or {})
    for name in sorted(found):
        if found[name]:
            try:
                yield name, date.fromisoformat(found[name])
            except ValueError as error:
                raise ConfigError(f"the cut-off of {name} is '{found[name]}', not a date YYYY-MM-DD") from error

"""Intervals and paired tests by resampling clusters of images.

Questions about one image are not independent, so that whole clusters are drawn (samples that share an image are
one). Intervals are the bias-corrected and accelerated bootstrap (Efron 1987) of a ratio of sums, widened for few
clusters as Hesterberg (2015, "What teachers should know about the bootstrap") advises; the p-value is of a two-sided
sign-flip test on the clusters' sums. More than `MAX_GROUPS` clusters are first thrown together at
random into that many groups of equal size, which bounds time and memory and leaves the variance as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from engine.core.schema import Estimate
from inference.metrics.units import Ints, Reals

MAX_GROUPS = 4096
RESAMPLES = 2000
LEVEL = 0.95
SMALL_PRODUCT = 1_000_000
#: Resamples that are multiplied at a time.
BLOCK = 250
_normal = NormalDist()
#: Sums by group of a figure's top and bottom.
Folded = tuple[Reals, Reals]


@dataclass(frozen=True, slots=True)
class Resampler:
    """`group` is the group of each sample, `weights` (resamples, groups) how often each was drawn, `seed` that of the
    signs for paired tests. One resampler serves all figures of a report, so that differences are paired."""

    group: Ints
    groups: int
    weights: npt.NDArray[np.uint8]
    seed: int

    @classmethod
    def of(cls, cluster: Ints, *, seed: int, resamples: int = RESAMPLES) -> Resampler:
        """From the cluster number (0 to n - 1) of each sample."""
        rng = np.random.default_rng([seed, 20260101])
        clusters = int(cluster.max()) + 1 if cluster.size else 0
        groups = min(clusters, MAX_GROUPS)
        group = cluster
        if clusters > groups:
            places = np.arange(clusters, dtype=np.int64) % groups
            group = rng.permutation(places)[cluster]
        # drawn more than 255 times: less likely than 1e-300 for two groups or more
        weights = np.zeros((resamples, groups), dtype=np.uint8)
        for start in range(0, resamples if groups else 0, BLOCK):
            count = min(BLOCK, resamples - start)
            drawn = rng.integers(0, groups, size=(count, groups))
            drawn += groups * np.arange(count)[:, np.newaxis]
            times = np.bincount(drawn.reshape(-1), minlength=count * groups).reshape(count, groups)
            weights[start : start + count] = np.minimum(times, 255)
        return cls(group, groups, weights, seed)

    def fold(self, sample: Ints, values: Reals) -> Reals:
        """Sums of a per-pair column by group."""
        found = np.bincount(self.group[sample], weights=values, minlength=self.groups)
        return found.astype(np.float64)

    def folded(self, sample: Ints, top: Reals, bottom: Reals) -> Folded:
        """Both columns' sums by group: all that a figure and its interval need of them."""
        return self.fold(sample, top), self.fold(sample, bottom)

    def estimates(self, folded: Sequence[Folded], *, intervals: bool = True) -> list[Estimate]:
        """sum(top) / sum(bottom) of each pair of folded columns, with its interval if asked for; None for 0/0, no
        interval for fewer than two groups. All are resampled in one product."""
        if not folded:
            return []
        if not intervals:
            sums = [(float(above.sum()), float(below.sum())) for above, below in folded]
            return [Estimate(value=top / bottom if bottom > 0 else None) for top, bottom in sums]
        drawn = _product(self.weights, np.stack([column for pair in folded for column in pair], axis=1))
        found = []
        for place, (above, below) in enumerate(folded):
            total = float(below.sum())
            if total <= 0:
                found.append(Estimate(value=None))
                continue
            left = _ratio(above.sum() - above, below.sum() - below)
            ratios = _ratio(drawn[:, 2 * place], drawn[:, 2 * place + 1])
            found.append(_interval(float(above.sum()) / total, ratios, left[below > 0]))
        return found

    def estimate(self, sample: Ints, top: Reals, bottom: Reals) -> Estimate:
        """One figure, see `estimates`."""
        return self.estimates([self.folded(sample, top, bottom)])[0]

    def difference(
        self, sample: Ints, first: tuple[Reals, Reals], second: tuple[Reals, Reals]
    ) -> tuple[Estimate, float | None]:
        """Figure of `first` minus that of `second` over the same pairs, and the p-value where both are means."""
        a, b = (self.fold(sample, first[0]), self.fold(sample, first[1]))
        c, d = (self.fold(sample, second[0]), self.fold(sample, second[1]))
        if b.sum() <= 0 or d.sum() <= 0:
            return Estimate(value=None), None
        value = float(a.sum() / b.sum() - c.sum() / d.sum())
        drawn_sums = _product(self.weights, np.stack([a, b, c, d], axis=1))
        drawn = _ratio(drawn_sums[:, 0], drawn_sums[:, 1]) - _ratio(drawn_sums[:, 2], drawn_sums[:, 3])
        left = _ratio(a.sum() - a, b.sum() - b) - _ratio(c.sum() - c, d.sum() - d)
        p_value = None
        if np.array_equal(first[1], second[1]) and int(np.count_nonzero(b)) >= 2:
            p_value = self._sign_flips(a - c)
        return _interval(value, drawn, left[(b > 0) | (d > 0)]), p_value

    def _sign_flips(self, gap: Reals) -> float:
        """Share of random signs under which the groups' gaps sum up as far from zero as they do."""
        rng = np.random.default_rng([self.seed, 20260102])
        as_far, count, wanted = 0, len(self.weights), abs(float(gap.sum())) - 1e-9
        for start in range(0, count, BLOCK):
            signs = rng.integers(0, 2, size=(min(BLOCK, count - start), self.groups), dtype=np.int8)
            flipped = _product(signs, (2 * gap)[:, np.newaxis])[:, 0] - gap.sum()
            as_far += int(np.count_nonzero(np.abs(flipped) >= wanted))
        return (1 + as_far) / (1 + count)


def _product(weights: npt.NDArray[np.uint8] | npt.NDArray[np.int8], columns: Reals) -> Reals:
    """weights @ columns in exact float64, a block of rows at a time: the weights as floats would not stay small."""
    found = np.empty((len(weights), columns.shape[1]))
    for start in range(0, len(weights), BLOCK):
        block = weights[start : start + BLOCK].astype(np.float64)
        # the threads of a BLAS cost more than a small product, very much so on a busy machine
        if block.size * columns.shape[1] < SMALL_PRODUCT:
            found[start : start + BLOCK] = np.einsum("rg,gc->rc", block, columns)
        else:
            found[start : start + BLOCK] = block @ columns
    return found


def _ratio(top: Reals, bottom: Reals) -> Reals:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Reals = np.where(bottom > 0, top / bottom, np.nan)
    return found


def _interval(value: float, drawn: Reals, left_out: Reals) -> Estimate:
    drawn = np.sort(drawn[np.isfinite(drawn)])
    left_out = left_out[np.isfinite(left_out)]
    if len(left_out) < 2 or len(drawn) < 20:
        return Estimate(value=value)
    if drawn[0] == drawn[-1]:
        return Estimate(value=value, low=float(drawn[0]), high=float(drawn[0]))
    first, last = np.searchsorted(drawn, value, "left"), np.searchsorted(drawn, value, "right")
    below = min(max(float(first + last) / 2 / len(drawn), 1 / len(drawn)), 1 - 1 / len(drawn))
    bias = _normal.inv_cdf(below)
    gap: Reals = left_out.mean() - left_out
    spread = float((gap**2).sum())
    acceleration = float((gap**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    edges = []
    for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2):
        z = bias + _normal.inv_cdf(share) * _widening(len(left_out))
        edges.append(_quantile(drawn, _normal.cdf(bias + z / (1 - acceleration * z))))
    return Estimate(value=value, low=edges[0], high=edges[1])


def _quantile(ordered: Reals, share: float) -> float:
    """By linear interpolation between neighbours."""
    place = share * (len(ordered) - 1)
    low = min(int(place), len(ordered) - 2)
    return float(ordered[low] + (place - low) * (ordered[low + 1] - ordered[low]))


def _widening(count: int) -> float:
    """How much further out the quantiles lie for `count` clusters: Student's t and the bootstrap's own narrowness,
    relative to the normal distribution (t by its expansion in 1/df, Abramowitz and Stegun 26.7.5)."""
    z, df = _normal.inv_cdf((1 + LEVEL) / 2), count - 1
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return float(t / z * (count / df) ** 0.5)


def clusters(sample: Ints, key: npt.NDArray[np.uint64], count: int) -> Ints:
    """Cluster number of each of `count` samples, from pairs of a sample and one of its keys: samples that share a key,
    also through others, are one cluster. Numbers are in the order of each cluster's first sample."""
    parent = list(range(count))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    order = np.lexsort((sample, key))
    ordered, same = sample[order], key[order][1:] == key[order][:-1]
    for place in np.flatnonzero(same).tolist():
        one, other = sorted((root(int(ordered[place])), root(int(ordered[place + 1]))))
        parent[other] = one
    roots = np.array([root(place) for place in range(count)], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)

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
SMALL_PRODUCT = 4_000_000
_normal = NormalDist()


@dataclass(frozen=True, slots=True)
class Resampler:
    """`group` is the group of each sample, `weights` (resamples, groups) how often each was drawn, `signs` of the
    same shape -1 or 1. One resampler serves all figures of a report, so that differences are paired."""

    group: Ints
    groups: int
    weights: Reals
    signs: npt.NDArray[np.int8]

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
        weights = np.zeros((resamples, groups), dtype=np.float64)
        for row in weights if groups else ():
            row[:] = np.bincount(rng.integers(0, groups, size=groups), minlength=groups)
        signs = rng.integers(0, 2, size=(resamples, groups), dtype=np.int8) * np.int8(2) - np.int8(1)
        return cls(group, groups, weights, signs)

    def fold(self, sample: Ints, values: Reals) -> Reals:
        """Sums of a per-pair column by group."""
        found = np.bincount(self.group[sample], weights=values, minlength=self.groups)
        return found.astype(np.float64)

    def estimates(
        self, sample: Ints, columns: Sequence[tuple[Reals, Reals]], *, intervals: bool = True
    ) -> list[Estimate]:
        """sum(top) / sum(bottom) of each pair of columns, with its interval if asked for; None for 0/0, no interval for
        fewer than two groups. All columns are resampled in one product, which is what makes many figures cheap."""
        folded = [(self.fold(sample, top), self.fold(sample, bottom)) for top, bottom in columns]
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
        return self.estimates(sample, [(top, bottom)])[0]

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
            gap = a - c
            flipped = np.abs(_product(self.signs.astype(np.float64), gap[:, np.newaxis])[:, 0])
            as_far = int(np.count_nonzero(flipped >= abs(float(gap.sum())) - 1e-9))
            p_value = (1 + as_far) / (1 + len(flipped))
        return _interval(value, drawn, left[(b > 0) | (d > 0)]), p_value


def _product(weights: Reals, columns: Reals) -> Reals:
    # the threads of a BLAS cost more than a small product, very much so on a busy machine
    if weights.size * columns.shape[1] < SMALL_PRODUCT:
        small: Reals = np.einsum("rg,gc->rc", weights, columns)
        return small
    return weights @ columns


def _ratio(top: Reals, bottom: Reals) -> Reals:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Reals = np.where(bottom > 0, top / bottom, np.nan)
    return found


def _interval(value: float, drawn: Reals, left_out: Reals) -> Estimate:
    drawn = drawn[np.isfinite(drawn)]
    left_out = left_out[np.isfinite(left_out)]
    if len(left_out) < 2 or len(drawn) < 20:
        return Estimate(value=value)
    if float(np.ptp(drawn)) == 0.0:
        return Estimate(value=value, low=float(drawn[0]), high=float(drawn[0]))
    below = float(np.count_nonzero(drawn < value) + 0.5 * np.count_nonzero(drawn == value)) / len(drawn)
    below = min(max(below, 1 / len(drawn)), 1 - 1 / len(drawn))
    bias = _normal.inv_cdf(below)
    gap: Reals = left_out.mean() - left_out
    spread = float((gap**2).sum())
    acceleration = float((gap**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    edges = []
    for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2):
        z = bias + _normal.inv_cdf(share) * _widening(len(left_out))
        edges.append(_normal.cdf(bias + z / (1 - acceleration * z)))
    low, high = (float(np.quantile(drawn, edge)) for edge in edges)
    return Estimate(value=value, low=low, high=high)


def _widening(count: int) -> float:
    """How much further out the quantiles lie for `count` clusters: Student's t and the bootstrap's own narrowness,
    relative to the normal distribution (t by its expansion in 1/df, Abramowitz and Stegun 26.7.5)."""
    z, df = _normal.inv_cdf((1 + LEVEL) / 2), count - 1
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return float(t / z * (count / df) ** 0.5)


def clusters(keys: list[tuple[str, ...]]) -> Ints:
    """Cluster number per sample: samples that share a key, also through others, are one cluster."""
    owner: dict[str, int] = {}
    parent = list(range(len(keys)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for place, found in enumerate(keys):
        for key in found:
            if key in owner:
                parent[root(place)] = root(owner[key])
            else:
                owner[key] = place
    roots = np.array([root(place) for place in range(len(keys))], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)

"""Intervals hold what they promise: simulated data whose truth is known, clusters included."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from inference.metrics.bootstrap import MAX_GROUPS, Resampler, clusters

RUNS = 1000


def simulate(rng: np.random.Generator, images: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Questions on images: one to four per image, IoUs that share the image's difficulty, sizes that differ a lot."""
    per_image = rng.integers(1, 5, size=images)
    cluster = np.repeat(np.arange(images), per_image)
    hard = rng.normal(size=images)[cluster]
    iou = 1 / (1 + np.exp(-(0.4 + 1.0 * hard + 1.0 * rng.normal(size=len(cluster)))))
    union = np.exp(rng.normal(loc=10.0, scale=0.8, size=len(cluster)))
    return cluster, iou, iou * union, union


@pytest.mark.slow
def test_95_percent_intervals_hold_the_truth_in_93_to_97_percent_of_runs() -> None:
    rng = np.random.default_rng(5)
    _, iou, inter, union = simulate(rng, 400_000)
    truth = {"giou": iou.mean(), "ciou": inter.sum() / union.sum(), "gap": 0.0}
    held = dict.fromkeys(truth, 0)
    # a resampler depends on the number of clusters alone, so that a few serve all runs
    resamplers = [Resampler.of(np.arange(200), seed=seed) for seed in range(10)]
    for run in range(RUNS):
        cluster, iou, inter, union = simulate(rng, 200)
        resampler = resamplers[run % len(resamplers)]
        ones = np.ones(len(iou))
        found = {
            "giou": resampler.estimate(cluster, iou, ones),
            "ciou": resampler.estimate(cluster, inter, union),
            "gap": resampler.difference(cluster, (iou + rng.normal(scale=0.2, size=len(iou)), ones), (iou, ones))[0],
        }
        for name, estimate in found.items():
            assert estimate.low is not None
            assert estimate.high is not None
            held[name] += estimate.low <= truth[name] <= estimate.high
    shares = {name: count / RUNS for name, count in held.items()}
    sys.stderr.write(f"share of {RUNS} intervals that hold the truth: {shares}\n")
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares


def test_ignoring_clusters_would_promise_too_much() -> None:
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(50), 20)
    values = rng.normal(size=50)[cluster] + 0.1 * rng.normal(size=1000)
    ones = np.ones(1000)
    honest = Resampler.of(np.arange(50), seed=0).estimate(cluster, values, ones)
    blind = Resampler.of(np.arange(1000), seed=0).estimate(np.arange(1000), values, ones)
    assert honest.low is not None
    assert honest.high is not None
    assert blind.low is not None
    assert blind.high is not None
    assert honest.high - honest.low > 3 * (blind.high - blind.low)


def test_many_clusters_are_grouped_without_changing_the_width() -> None:
    rng = np.random.default_rng(2)
    count = 5 * MAX_GROUPS
    values = rng.normal(size=count)
    found = Resampler.of(np.arange(count), seed=0, resamples=500)
    assert found.groups == MAX_GROUPS
    estimate = found.estimate(np.arange(count), values, np.ones(count))
    assert estimate.low is not None
    assert estimate.high is not None
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.96 / np.sqrt(count), rel=0.12)


def test_edges_of_what_can_be_said() -> None:
    one = Resampler.of(np.zeros(3, dtype=np.int64), seed=0, resamples=100)
    found = one.estimate(np.arange(3), np.array([1.0, 0.0, 1.0]), np.ones(3))
    assert (found.value, found.low, found.high) == (2 / 3, None, None)
    assert one.estimate(np.arange(3), np.zeros(3), np.zeros(3)).value is None
    nothing = Resampler.of(np.zeros(0, dtype=np.int64), seed=0, resamples=10)
    assert nothing.estimate(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)).value is None
    same = Resampler.of(np.arange(4), seed=0, resamples=100).estimate(np.arange(4), np.ones(4), np.ones(4))
    assert (same.low, same.high) == (1.0, 1.0)


def test_same_seed_same_interval() -> None:
    values = np.random.default_rng(0).random(80)
    first, second, third = (
        Resampler.of(np.arange(80), seed=seed).estimate(np.arange(80), values, np.ones(80)) for seed in (1, 1, 2)
    )
    assert first == second != third


def test_samples_that_share_an_image_are_one_cluster() -> None:
    keys = ["ab", "c", "bd", "d", "e"]
    pairs = [(place, ord(key)) for place, found in enumerate(keys) for key in found]
    sample, key = np.array(pairs).T
    found = clusters(sample, key.astype(np.uint64), len(keys))
    assert found.tolist() == [0, 1, 0, 0, 2]
    assert found[0] == found[2] == found[3]
    assert len({found[0], found[1], found[4]}) == 3

"""Figures equal those of the public evaluators' rules, re-stated here independently over plain pixel loops.

The re-statements follow the published behaviour step by step (accumulators, epsilons, dropped samples), not our
columns: LISA counts by class histograms, GRES by flags, Seg-Zero by what its exceptions leave in the list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.evaluation import benchmark_of, predict

from engine.core.geometry import Mask
from engine.core.schema import Convention, Prediction, ScoreRow
from inference.benchmarks.base import TruthMask
from inference.metrics.score import score

IGNORE = 255


@dataclass(frozen=True)
class Pair:
    """A truth of 0, 1 and 255, a prediction (None: the reply could not be read), and whether "none" was said."""

    truth: np.ndarray
    predicted: Mask | None
    said_none: bool


def pairs(*, ignore: bool, unread: bool) -> st.SearchStrategy[list[Pair]]:
    shape = st.tuples(st.integers(1, 6), st.integers(1, 6))
    values = (0, 1, IGNORE) if ignore else (0, 1)

    @st.composite
    def one(draw: st.DrawFn) -> Pair:
        size = draw(shape)
        # whole empty masks are as frequent as drawn ones: the rules differ there
        truth = (
            np.zeros(size, np.uint8)
            if draw(st.booleans())
            else draw(arrays(np.uint8, size, elements=st.sampled_from(values)))
        )
        predicted = np.zeros(size, np.bool_) if draw(st.booleans()) else draw(arrays(np.bool_, size))
        return Pair(truth, None if unread and draw(st.integers(0, 3)) == 0 else predicted, draw(st.booleans()))

    return st.lists(one(), min_size=1, max_size=8)


def ours(found: list[Pair], convention: Convention, *, flags: bool = False) -> ScoreRow:
    truths = {f"s{n}": [TruthMask(one.truth == 1, one.truth == IGNORE)] for n, one in enumerate(found)}
    predictions: list[Prediction] = [
        predict(f"s{n}", [one.predicted], kind="bad_reply", no_target=(one.said_none,) if flags else ())
        for n, one in enumerate(found)
    ]
    return score(benchmark_of(truths), {"model": predictions}, convention=convention, resamples=0).row("model")


def lisa(found: list[Pair]) -> tuple[float, float]:
    """Two-class histograms with the ignore label; 1e-5 in each IoU; 1 where the union is 0; 1e-10 in cIoU."""
    inter_sum, union_sum, iou_sum, count = np.zeros(2), np.zeros(2), np.zeros(2), 0
    for one in found:
        assert one.predicted is not None
        output = one.predicted.astype(np.int64).ravel()
        target = one.truth.astype(np.int64).ravel()
        output[target == IGNORE] = IGNORE
        inter = np.array([np.sum((output == k) & (target == k)) for k in (0, 1)], dtype=float)
        union = np.array([np.sum(output == k) + np.sum(target == k) for k in (0, 1)], dtype=float) - inter
        iou = inter / (union + 1e-5)
        iou[union == 0] += 1.0
        inter_sum, union_sum, iou_sum, count = inter_sum + inter, union_sum + union, iou_sum + iou, count + 1
    return iou_sum[1] / count, inter_sum[1] / (union_sum[1] + 1e-10)


def gres(found: list[Pair]) -> dict[str, float | None]:
    """Flags decide for absent targets; a wrong "none" loses its intersection and keeps its union."""
    ious, inter_sum, union_sum = [], 0, 0
    right_none = wrong_none = right_some = wrong_some = 0
    for one in found:
        assert one.predicted is not None
        target = one.truth == 1
        inter, union = int((target & one.predicted).sum()), int((target | one.predicted).sum())
        if not target.any():
            if one.said_none:
                right_none += 1
                ious.append(1.0)
            else:
                wrong_none += 1
                union_sum += union
                ious.append(0.0)
        else:
            if one.said_none:
                wrong_some += 1
                inter = 0
            else:
                right_some += 1
            inter_sum, union_sum = inter_sum + inter, union_sum + union
            ious.append(inter / union)
    absent, there = right_none + wrong_none, right_some + wrong_some
    return {
        "giou": sum(ious) / len(ious),
        "ciou": inter_sum / union_sum if union_sum else None,
        "n_acc": right_none / absent if absent else None,
        "t_acc": right_some / there if there else None,
    }


def seg_zero(found: list[Pair]) -> list[tuple[int, int]]:
    """What is in its list at the end: a sample with an empty union raised and is not; an unread reply is (0, area)."""
    kept = []
    for one in found:
        target = one.truth.astype(bool)
        if one.predicted is None:
            inter, union = 0, int(target.sum())
        else:
            inter, union = int((target & one.predicted).sum()), int((target | one.predicted).sum())
        try:
            inter / union
        except ZeroDivisionError:
            continue
        kept.append((inter, union))
    return kept


@settings(max_examples=60, deadline=None)
@given(pairs(ignore=True, unread=False))
def test_lisa(found: list[Pair]) -> None:
    row, (giou, ciou) = ours(found, "lisa"), lisa(found)
    # an epsilon of 1e-5 on a union of one pixel moves the IoU by at most 1e-5
    assert row.value("giou") == pytest.approx(giou, abs=1.1e-5)
    value = row.value("ciou")
    assert (0.0 if value is None else value) == pytest.approx(ciou, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(pairs(ignore=False, unread=False))
def test_gres(found: list[Pair]) -> None:
    row = ours(found, "gres", flags=True)
    for name, value in gres(found).items():
        assert row.value(name) == (None if value is None else pytest.approx(value, abs=1e-12)), name


@settings(max_examples=60, deadline=None)
@given(pairs(ignore=True, unread=True))
def test_seg_zero(found: list[Pair]) -> None:
    row, kept = ours(found, "seg-zero"), seg_zero(found)
    if not kept:
        assert row.value("giou") is None
        return
    assert row.value("giou") == pytest.approx(sum(i / u for i, u in kept) / len(kept), abs=1e-12)
    assert row.value("ciou") == pytest.approx(sum(i for i, _ in kept) / sum(u for _, u in kept), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(pairs(ignore=True, unread=True))
def test_every_report_holds_the_other_conventions_too(found: list[Pair]) -> None:
    headline = {name: ours(found, name) for name in ("lisa", "gres", "seg-zero")}
    for name, row in headline.items():
        for other in headline.values():
            if other is not row and f"{name}:giou" in other.figures:
                assert other.value(f"{name}:giou") == row.value("giou")
                assert other.value(f"{name}:ciou") == row.value("ciou")

"""The metrics that come with the project. See `registry` for how to add one."""

from __future__ import annotations

import numpy as np

from inference.metrics.conventions import Effective
from inference.metrics.registry import Terms, metric
from inference.metrics.units import Reals

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


@metric("giou", title="gIoU", about="mean IoU over (image, mask) pairs", headline=True)
def giou(e: Effective) -> Terms:
    return Terms(np.where(e.counted, e.iou, 0.0), e.counted)


@metric("ciou", title="cIoU", about="sum of intersections over sum of unions", headline=True)
def ciou(e: Effective) -> Terms:
    return Terms(np.where(e.counted, e.intersection, 0.0), np.where(e.counted, e.union, 0.0))


@metric("sample_giou", title="gIoU per sample", about="mean over samples of the mean IoU of a sample's images")
def sample_giou(e: Effective) -> Terms:
    share = np.where(e.counted, 1.0 / np.maximum(_counted_of_sample(e), 1.0), 0.0)
    return Terms(e.iou * share, share)


@metric("targeted_giou", title="gIoU targeted", about="mean IoU over the pairs whose target is in the image")
def targeted_giou(e: Effective) -> Terms:
    there = e.counted & (e.units.target > 0)
    return Terms(np.where(there, e.iou, 0.0), there)


def _precision(threshold: float) -> None:
    @metric(
        f"pr@{threshold}",
        title=f"Pr@{threshold}",
        about=f"share of present targets met with an IoU of at least {threshold}",
    )
    def precision(e: Effective) -> Terms:
        there = e.counted & (e.units.target > 0)
        return Terms(there & (e.iou >= threshold), there)


for _threshold in THRESHOLDS:
    _precision(_threshold)


@metric("n_acc", title="N-acc", about="share of absent targets for which 'nothing is there' was said")
def n_acc(e: Effective) -> Terms:
    absent = e.counted & (e.units.target == 0)
    return Terms(absent & e.units.said_none, absent)


@metric("t_acc", title="T-acc", about="share of present targets for which something was shown")
def t_acc(e: Effective) -> Terms:
    there = e.counted & (e.units.target > 0)
    return Terms(there & ~e.units.said_none, there)


@metric("accuracy", title="Acc.", about="share of answers that name the entity: exact after normalising, or an alias")
def accuracy(e: Effective) -> Terms:
    return _of_answers(e, e.units.correct)


@metric("answer_f1", title="Answer F1", about="mean token F1 of the answers, best of answer and aliases")
def answer_f1(e: Effective) -> Terms:
    return _of_answers(e, e.units.f1)


@metric("judged", title="Acc. (judge)", about="share of answers that a judging model accepted")
def judged(e: Effective) -> Terms:
    return _of_answers(e, e.units.judged)


def _of_answers(e: Effective, values: Reals) -> Terms:
    given = e.units.first & np.isfinite(values)
    return Terms(np.where(given, np.nan_to_num(values), 0.0), given)


def _counted_of_sample(e: Effective) -> Reals:
    """Per pair: how many pairs of its sample are counted."""
    if not len(e.units):
        return np.zeros(0)
    _, inverse = np.unique(e.units.sample, return_inverse=True)
    counts = np.bincount(inverse, weights=e.counted.astype(np.float64))
    return counts[inverse].astype(np.float64)

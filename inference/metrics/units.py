"""Scores as columns: one entry per (image, mask) pair, growing while a benchmark streams by.

What is known of the truth is kept once, a segmenter's counts beside it: together some ninety bytes per pair, whatever
the images' size. Conventions and metrics work on the finished columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from engine.core.schema import FailureKind
from inference.metrics.baselines import EMPTY, RANDOM, WHOLE
from inference.metrics.counts import Counts

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SCORED, FAILED, MISSING = 0, 1, 2
STATUS = ("scored", "failed", "missing")
FAILURES: tuple[FailureKind, ...] = get_args(FailureKind)


def _column(code: str) -> Callable[[], array[int]]:
    return lambda: array(code)


@dataclass(slots=True)
class Pairs:
    """What is known of the pairs of one truth whoever predicts: the truth's pixels, and what a random box meets.

    `sample` is the index of the sample, `image` the place of the mask in it; pairs come in ascending order.
    """

    sample: array[int] = field(default_factory=_column("i"))
    image: array[int] = field(default_factory=_column("i"))
    target: array[int] = field(default_factory=_column("q"))
    ignored: array[int] = field(default_factory=_column("q"))
    pixels: array[int] = field(default_factory=_column("q"))
    box_intersection: array[int] = field(default_factory=_column("q"))
    box_predicted: array[int] = field(default_factory=_column("q"))
    box_predicted_ignored: array[int] = field(default_factory=_column("q"))

    def add(self, sample: int, image: int, box: Counts) -> None:
        """Append one pair with the counts of its random box."""
        self.sample.append(sample)
        self.image.append(image)
        self.target.append(box.target)
        self.ignored.append(box.ignored)
        self.pixels.append(box.pixels)
        self.box_intersection.append(box.intersection)
        self.box_predicted.append(box.predicted)
        self.box_predicted_ignored.append(box.predicted_ignored)

    def baseline(self, name: str, samples: int) -> Units:
        """The columns of a baseline, see `baselines`."""
        target, ignored, pixels = (_ints(column) for column in (self.target, self.ignored, self.pixels))
        none = np.zeros_like(target)
        met, predicted, inside = {
            EMPTY: (none, none, none),
            WHOLE: (target, pixels - ignored, ignored),
            RANDOM: (_ints(self.box_intersection), _ints(self.box_predicted), _ints(self.box_predicted_ignored)),
        }[name]
        blank = np.full(samples, np.nan)
        return self._units(none, none - 1, predicted == 0, met, predicted, inside, (blank, blank, blank))

    def units(self, tally: Tally, answers: tuple[Reals, Reals, Reals]) -> Units:
        """The columns of a segmenter; `answers` are its verdicts per sample (correct, F1, judged), NaN for none.

        Pairs that it says nothing of are missing.
        """
        known = _keys(self.sample, self.image)
        found = _keys(tally.sample, tally.image)
        place = np.searchsorted(known, found)

        def column(values: array[int], otherwise: int) -> Ints:
            filled = np.full(len(known), otherwise, dtype=np.int64)
            filled[place] = values
            return filled

        return self._units(
            column(tally.status, MISSING),
            column(tally.failure, -1),
            column(tally.said_none, 0) > 0,
            column(tally.intersection, 0),
            column(tally.predicted, 0),
            column(tally.predicted_ignored, 0),
            answers,
        )

    def _units(
        self,
        status: Ints,
        failure: Ints,
        said_none: Flags,
        intersection: Ints,
        predicted: Ints,
        predicted_ignored: Ints,
        answers: tuple[Reals, Reals, Reals],
    ) -> Units:
        sample = _ints(self.sample)
        first = np.ones(len(sample), dtype=np.bool_)
        first[1:] = sample[1:] != sample[:-1]
        return Units(
            sample=sample,
            image=_ints(self.image),
            status=status,
            failure=failure,
            intersection=intersection,
            target=_ints(self.target),
            predicted=predicted,
            ignored=_ints(self.ignored),
            predicted_ignored=predicted_ignored,
            pixels=_ints(self.pixels),
            said_none=said_none,
            first=first,
            correct=answers[0][sample],
            f1=answers[1][sample],
            judged=answers[2][sample],
        )


@dataclass(slots=True)
class Tally:
    """What a segmenter's predictions came to, one entry per pair in any order; see `Pairs` for the rest."""

    sample: array[int] = field(default_factory=_column("i"))
    image: array[int] = field(default_factory=_column("i"))
    status: array[int] = field(default_factory=_column("b"))
    failure: array[int] = field(default_factory=_column("b"))
    said_none: array[int] = field(default_factory=_column("b"))
    intersection: array[int] = field(default_factory=_column("q"))
    predicted: array[int] = field(default_factory=_column("q"))
    predicted_ignored: array[int] = field(default_factory=_column("q"))

    def add(
        self,
        sample: int,
        image: int,
        counts: Counts,
        *,
        status: int = SCORED,
        failure: int = -1,
        said_none: bool = False,
    ) -> None:
        """Append one pair."""
        self.sample.append(sample)
        self.image.append(image)
        self.status.append(status)
        self.failure.append(failure)
        self.said_none.append(said_none)
        self.intersection.append(counts.intersection)
        self.predicted.append(counts.predicted)
        self.predicted_ignored.append(counts.predicted_ignored)


def _ints(values: array[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _keys(sample: array[int], image: array[int]) -> Ints:
    return (_ints(sample) << 32) + _ints(image)


@dataclass(frozen=True, slots=True)
class Units:
    """Raw columns of one segmenter against one truth, all of one length.

    `first` marks the first pair of each sample; `correct`, `f1` and `judged` repeat the sample's answer verdicts,
    NaN where it gave no answer.
    """

    sample: Ints
    image: Ints
    status: Ints
    failure: Ints
    intersection: Ints
    target: Ints
    predicted: Ints
    ignored: Ints
    predicted_ignored: Ints
    pixels: Ints
    said_none: Flags
    first: Flags
    correct: Reals
    f1: Reals
    judged: Reals

    def __len__(self) -> int:
        return len(self.sample)

    @property
    def union(self) -> Ints:
        return self.target + self.predicted - self.intersection

    def select(self, flags: Flags) -> Units:
        """The entries that are flagged; `first` is kept for the first one left of each sample."""
        kept = {name: getattr(self, name)[flags] for name in self.__slots__}
        sample = kept["sample"]
        first = np.ones(len(sample), dtype=np.bool_)
        first[1:] = sample[1:] != sample[:-1]
        return Units(**{**kept, "first": first})

    def strict(self) -> Units:
        """The columns with every failed or missing pair as a wrong empty mask, and no answer as a wrong answer
        (if the segmenter answers at all)."""
        lost = self.status != SCORED
        answers = bool(np.isfinite(self.correct).any())
        return replace(
            self,
            status=np.zeros_like(self.status),
            intersection=np.where(lost, 0, self.intersection),
            predicted=np.where(lost, 0, self.predicted),
            predicted_ignored=np.where(lost, 0, self.predicted_ignored),
            correct=np.nan_to_num(self.correct, nan=0.0) if answers else self.correct,
            f1=np.nan_to_num(self.f1, nan=0.0) if answers else self.f1,
            judged=np.nan_to_num(self.judged, nan=0.0) if np.isfinite(self.judged).any() else self.judged,
            said_none=np.where(lost, False, self.said_none),
            failure=np.where(lost, -2, self.failure),
        )

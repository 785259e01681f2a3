"""Scores as columns: one entry per (image, mask) pair, growing while a benchmark streams by.

A segmenter's counts against one truth take some seventy bytes per pair, whatever the images' size. Conventions
and metrics work on the finished columns.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.core.schema import FailureKind
from inference.metrics.counts import Counts

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SCORED, FAILED, MISSING = 0, 1, 2
STATUS = ("scored", "failed", "missing")
FAILURES: tuple[FailureKind, ...] = (
    "out_of_memory",
    "no_reply",
    "bad_reply",
    "refused",
    "no_mask_token",
    "no_box",
    "timeout",
    "error",
)


def _ints() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Tally:
    """Columns that grow. `sample` is the index of the sample, `image` the place of the mask in it."""

    sample: array[int] = field(default_factory=_ints)
    image: array[int] = field(default_factory=_ints)
    status: array[int] = field(default_factory=_ints)
    failure: array[int] = field(default_factory=_ints)
    intersection: array[int] = field(default_factory=_ints)
    target: array[int] = field(default_factory=_ints)
    predicted: array[int] = field(default_factory=_ints)
    ignored: array[int] = field(default_factory=_ints)
    predicted_ignored: array[int] = field(default_factory=_ints)
    pixels: array[int] = field(default_factory=_ints)
    said_none: array[int] = field(default_factory=_ints)

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
        self.intersection.append(counts.intersection)
        self.target.append(counts.target)
        self.predicted.append(counts.predicted)
        self.ignored.append(counts.ignored)
        self.predicted_ignored.append(counts.predicted_ignored)
        self.pixels.append(counts.pixels)
        self.said_none.append(int(said_none))

    def units(self, *, correct: Reals, f1: Reals, judged: Reals) -> Units:
        """The finished columns, in order of sample and image. The verdicts are per sample, NaN for none."""
        sample, image = np.array(self.sample, dtype=np.int64), np.array(self.image, dtype=np.int64)
        order = np.lexsort((image, sample))
        sample = sample[order]

        def column(values: array[int]) -> Ints:
            return np.array(values, dtype=np.int64)[order]

        first = np.ones(len(sample), dtype=np.bool_)
        first[1:] = sample[1:] != sample[:-1]
        return Units(
            sample=sample,
            image=image[order],
            status=column(self.status),
            failure=column(self.failure),
            intersection=column(self.intersection),
            target=column(self.target),
            predicted=column(self.predicted),
            ignored=column(self.ignored),
            predicted_ignored=column(self.predicted_ignored),
            pixels=column(self.pixels),
            said_none=column(self.said_none).astype(np.bool_),
            first=first,
            correct=correct[sample],
            f1=f1[sample],
            judged=judged[sample],
        )


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

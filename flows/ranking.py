"""Which of several reports of one snapshot speaks for it: a trial with a few predictions must not."""

from __future__ import annotations

from collections.abc import Iterable

#: A segmenter that says nothing of more than this share of the pairs was tried out, not scored.
TRIAL = 0.1


def is_trial(missing: int, pairs: int) -> bool:
    """Whether a segmenter left out so much that its figures are none of the snapshot."""
    return missing > TRIAL * pairs


def rank(left_out: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """From (pairs without a prediction, all pairs) of each segmenter: more segmenters that are no trial rank first, of
    as many those that leave out less."""
    told = list(left_out)
    return sum(not is_trial(missing, pairs) for missing, pairs in told), -sum(missing for missing, _ in told)

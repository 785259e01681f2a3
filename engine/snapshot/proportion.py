"""An exact interval for a share that was counted in a random sample, and how far two people agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations

#: Share of samples whose interval misses the true value at most.
ALPHA = 0.05


def interval(wrong: int, judged: int, *, alpha: float = ALPHA) -> tuple[float, float]:
    """The Clopper-Pearson interval of `wrong` in `judged`, as shares.

    With none (or all) wrong only one side can be missed, so all of `alpha` is spent on it: 0 of 150 is at most 2.0 %
    (the rule of three). It is exact for sampling with replacement and a little too wide for a sample that is a large
    part of the whole. Raises ValueError for counts that don't go together.
    """
    if not 0 <= wrong <= judged or judged == 0:
        raise ValueError(f"{wrong} of {judged} is not a count in a sample")
    if wrong == 0:
        return 0.0, 1.0 - alpha ** (1.0 / judged)
    if wrong == judged:
        return alpha ** (1.0 / judged), 1.0
    low = _root(lambda p: 1.0 - _at_most(wrong - 1, judged, p) - alpha / 2)
    high = _root(lambda p: alpha / 2 - _at_most(wrong, judged, p))
    return low, high


def _at_most(count: int, trials: int, p: float) -> float:
    """Probability of at most `count` hits in `trials`."""
    if p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 1.0 if count >= trials else 0.0
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(p) + (trials - k) * math.log1p(-p)
        )
        for k in range(count + 1)
    )


def _root(rising: Callable[[float], float]) -> float:
    """Where a function that rises over [0, 1] is zero, to about 1e-12."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def cohens_kappa(pairs: list[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two people's words on the same things; None if there are none, or if both only ever used one
    and the same word, so that chance agreement is certain."""
    if not pairs:
        return None
    same = sum(a == b for a, b in pairs) / len(pairs)
    words = {word for pair in pairs for word in pair}
    chance = sum(
        sum(a == word for a, _ in pairs) * sum(b == word for _, b in pairs) / len(pairs) ** 2 for word in words
    )
    return None if chance >= 1.0 else (same - chance) / (1.0 - chance)


def agreement(words: Mapping[str, Mapping[str, str]]) -> tuple[int, float | None, float | None]:
    """How far people agree. `words` maps person to thing to word.

    Returns the number of pairs of words on one thing, the share of them that are equal, and Cohen's kappa, which for
    more than two people is the mean over pairs of people who share things (Light's kappa). None where undefined.
    """
    shared = same = 0
    kappas = []
    for one, other in combinations(sorted(words), 2):
        pairs = [(words[one][name], words[other][name]) for name in sorted(words[one].keys() & words[other].keys())]
        shared += len(pairs)
        same += sum(a == b for a, b in pairs)
        kappa = cohens_kappa(pairs)
        if kappa is not None:
            kappas.append(kappa)
    return shared, same / shared if shared else None, sum(kappas) / len(kappas) if kappas else None

"""Whether an answer names the entity: exact match after normalising, with aliases, and token F1 beside it.

Normalising follows the usual practice of question answering (SQuAD): lower case, no accents, no punctuation, no
articles, single spaces; a trailing possessive goes as well. Asking a model to judge lives in `judge`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

ARTICLES = frozenset({"a", "an", "the"})


def normalise(text: str) -> str:
    """Comparable form of an answer; empty if nothing is left."""
    plain = text
    for _ in range(3):  # folding may give what has to be decomposed again, and the other way round
        plain = unicodedata.normalize("NFKD", plain).casefold()
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    plain = re.sub(r"['’`]s\b", "", plain)
    plain = "".join(char if char.isalnum() else " " for char in plain)
    return " ".join(word for word in plain.split() if word not in ARTICLES)


def exact(answer: str, truths: Iterable[str]) -> bool:
    """Whether the answer is one of the accepted names."""
    found = normalise(answer)
    return bool(found) and any(found == normalise(truth) for truth in truths)


def token_f1(answer: str, truths: Iterable[str]) -> float:
    """Best token F1 against the accepted names, 0 to 1."""
    found = normalise(answer).split()
    best = 0.0
    for truth in truths:
        wanted = normalise(truth).split()
        shared = sum((Counter(found) & Counter(wanted)).values())
        if shared:
            best = max(best, 2 * shared / (len(found) + len(wanted)))
    return best

"""The text side of Grounding DINO: phrases to captions, and tokens back to phrases.

Every phrase is a span of its own in the caption, and a token belongs to a phrase because it lies in that span, never
because the words look alike. The model cuts its text at 256 tokens without a word, so long lists become several
captions. Pure functions, no torch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.geometry import Floats

#: Tokens that the model reads, with the two marks at the ends (`max_text_len` of the published configs).
TOKEN_LIMIT = 256
#: "." and "?" separate classes for the model; "/" joins two names of which its own helper would pick one at random.
_SEPARATORS = re.compile(r"[./?]")
_SPACES = re.compile(r"\s+")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'})


@dataclass(frozen=True, slots=True)
class Caption:
    """A text for the model. `phrases` are the original spellings, `spans` their (start, end) characters in `text`."""

    text: str
    phrases: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def clean_phrase(phrase: str) -> str:
    """A name as the caption may hold it: lower case, straight quotes, no separators or control characters, blanks
    folded; "" if nothing is left."""
    plain = phrase.translate(_QUOTES)
    plain = "".join(" " if unicodedata.category(c).startswith("C") else c for c in plain)
    plain = _SPACES.sub(" ", _SEPARATORS.sub(" ", plain.lower())).strip()
    return plain if any(c.isalnum() for c in plain) else ""


def build_captions(
    phrases: Sequence[str], *, count_tokens: Callable[[str], int], limit: int = TOKEN_LIMIT
) -> tuple[list[Caption], list[str]]:
    """Captions of "a . b . c ." in order, and the phrases that were dropped.

    The same phrase in another case is taken once, under its first spelling. Dropped are phrases with nothing in them
    and phrases that alone are longer than a caption. `count_tokens` gives the tokens of a text without the marks at
    its ends; the model's tokenizer splits at blanks first, so that counts of parts add up.
    """
    chunks: list[list[tuple[str, str]]] = [[]]
    used = 2
    seen: set[str] = set()
    dropped: list[str] = []
    for phrase in phrases:
        plain = clean_phrase(phrase)
        if plain in seen:
            continue
        tokens = count_tokens(plain) if plain else 0
        if tokens == 0 or tokens + 1 + 2 > limit:
            dropped.append(phrase)
            continue
        seen.add(plain)
        if used + tokens + 1 > limit:
            chunks.append([])
            used = 2
        chunks[-1].append((phrase, plain))
        used += tokens + 1
    return [_caption(chunk) for chunk in chunks if chunk], dropped


def phrase_tokens(caption: Caption, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Per phrase the indices of its tokens; `offsets` are the (start, end) characters of all tokens, (0, 0) for marks.

    A token belongs to the phrase whose span it overlaps; spans don't touch, so there is at most one.
    """
    found: list[tuple[int, ...]] = []
    for start, end in caption.spans:
        found.append(tuple(i for i, (a, b) in enumerate(offsets) if b > a and a < end and b > start))
    return found


def assign_phrases(
    probabilities: Floats, tokens: Sequence[Sequence[int]], *, text_threshold: float
) -> tuple[list[int | None], Floats]:
    """Which phrase each query means, and how sure the model is of the query.

    `probabilities` has shape (queries, tokens). A query's score is its best probability over all tokens of the
    caption, as the package's own `predict` has it. Its phrase is the one with the best token, if that token is above
    `text_threshold`; else None. Ties go to the earlier phrase.
    """
    scores = probabilities.max(axis=1) if probabilities.size else np.zeros(len(probabilities), np.float32)
    if not tokens or not len(probabilities):
        return [None] * len(probabilities), scores.astype(np.float32)
    per_phrase = np.stack([probabilities[:, list(t)].max(axis=1) if t else np.zeros(len(scores)) for t in tokens], 1)
    best = per_phrase.argmax(axis=1)
    labels: list[int | None] = [
        int(p) if per_phrase[q, p] > text_threshold else None for q, p in enumerate(best.tolist())
    ]
    return labels, scores.astype(np.float32)


def _caption(chunk: Sequence[tuple[str, str]]) -> Caption:
    spans = []
    position = 0
    for _, plain in chunk:
        spans.append((position, position + len(plain)))
        position += len(plain) + 3
    text = " . ".join(plain for _, plain in chunk) + " ."
    return Caption(text, tuple(phrase for phrase, _ in chunk), tuple(spans))

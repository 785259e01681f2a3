"""Is it a question at all, about a picture's entity, with a name as its answer?"""

from __future__ import annotations

import re

from engine.core.schema import Article
from engine.questions.draft import Draft
from engine.questions.lexicon import GENERIC
from engine.questions.text import atoms, level, words

MIN_WORDS, MAX_WORDS, MAX_CHARS = 4, 45, 400
MAX_ANSWER_WORDS = 8
_ASKS = re.compile(r"\b(who|whose|whom|which|what|name|identify)\b", re.I)
#: Questions whose answer is a place, a time, a number or a reason rather than something to segment.
_OTHER = re.compile(
    r"^(?:where|when|why|how|is|are|was|were|does|did|do|can|will|has|have)\b|^(?:in|on|at) (?:which|what)\b"
    r"|^what (?:time|year|date|day|number|amount|percentage|city|country|is the (?:date|time|year|number|reason))\b",
    re.I,
)


def question_malformed(draft: Draft, article: Article) -> str | None:
    """Why the question is not one sentence that asks for an entity, or None."""
    plain = level(draft.question)
    count = len(words(plain))
    if not plain.endswith("?") or plain.count("?") > 1:
        return "it is not one sentence with a question mark at its end"
    if not MIN_WORDS <= count <= MAX_WORDS or len(plain) > MAX_CHARS:
        return f"it has {count} words, {MIN_WORDS} to {MAX_WORDS} are allowed"
    if _OTHER.match(plain) or not _ASKS.search(plain):
        return "it does not ask for a person or a thing"
    if re.search(r"\b(?:the|this) (?:article|text|caption|passage|headline|author of this)\b", plain, re.I):
        return "it speaks of the article, which nobody who sees the picture has"
    return None


def answer_generic(draft: Draft, article: Article) -> str | None:
    """Why the answer is no name, or None."""
    plain = re.sub(r"^(?:the|an?)\s+", "", level(draft.answer), flags=re.I)
    if len(plain.split()) > MAX_ANSWER_WORDS:
        return "the answer is longer than a name"
    found = set(atoms(plain))
    if not found or found <= GENERIC:
        return f"'{plain}' names nobody"
    if not any(letter.isupper() or letter.isdigit() for letter in plain) and plain.isascii():
        return f"'{plain}' is not written as a name"
    return None

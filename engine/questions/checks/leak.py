"""Does the question hold a part of its answer? Surname, alias, initials, other spellings, the brand in a product."""

from __future__ import annotations

import re

from engine.core.schema import Article
from engine.questions.draft import Draft
from engine.questions.lexicon import NAMES_THAT_ARE_WORDS, PARTICLES, PRODUCT_PHRASES, TITLES
from engine.questions.text import atoms, fold, has_phrase, level, spellings

#: Parts of product names that name no product by themselves.
_COMMON_PARTS = frozenset(
    ["the", "a", "an", "and", "of", "new", "pro", "max", "mini", "plus", "ultra", "air", "one", "for"]
)
MIN_STEM = 5


def answer_in_question(draft: Draft, article: Article) -> str | None:
    """What part of the answer the question gives away, or None."""
    question = level(draft.question)
    asked = {form for atom in _raw_words(question) for form in spellings(atom)}
    squeezed = "".join(atoms(question))
    for name in (draft.answer, *draft.aliases):
        whole = "".join(atoms(name))
        if has_phrase(question, name) or (len(whole) >= MIN_STEM and whole in squeezed and len(name.split()) > 1):
            return f"the question says '{name}'"
    for part in _parts(draft):
        for form in spellings(part):
            if form in asked and not _is_a_word(part, question):
                return f"the question says '{part}', a part of '{draft.answer}'"
            if len(form) >= MIN_STEM and any(word.startswith(form) and word != form for word in asked):
                return f"the question holds a word made from '{part}'"
    if (letter := _model_letter(draft, question)) is not None:
        return f"the question says '{letter}', a part of '{draft.answer}'"
    initials = "".join(part[0] for part in level(draft.answer).split() if part[0].isalpha())
    if draft.entity_type == "person" and len(initials) >= 2:
        dotted = r"\.?\s?".join(map(re.escape, initials.upper()))
        if re.search(rf"(?<![A-Za-z]){dotted}\.?(?![A-Za-z])", question):
            return f"the question says the initials '{initials}'"
    return None


def _model_letter(draft: Draft, question: str) -> str | None:
    """A single capital that tells one model from another ("Vesta Q") and stands alone in the question."""
    if draft.entity_type != "product":
        return None
    letters = [part for part in level(draft.answer).split() if len(part) == 1 and part.isupper() and part not in "AI"]
    return next((letter for letter in letters if re.search(rf"(?<![\w-]){letter}(?![\w-])", question)), None)


def _raw_words(text: str) -> list[str]:
    return [part for word in re.findall(r"[^\W_]+(?:['\-][^\W_]+)*", text) for part in _split(word)]


def _split(word: str) -> list[str]:
    bare = re.sub(r"'s$|'$", "", word, flags=re.I)
    return [bare, *(part for part in re.split(r"['\-]", bare) if part)]


def _parts(draft: Draft) -> list[str]:
    """Parts of the answer that give it away alone."""
    parts = [part for part in _raw_words(level(draft.answer)) if part]
    dropped = PARTICLES | ({*TITLES} if draft.entity_type == "person" else _COMMON_PARTS | set(PRODUCT_PHRASES))
    phrase = set(draft.phrase.lower().split())
    return [
        part
        for part in parts
        if len(part) > 1 and not part.isdigit() and fold(part) not in dropped and fold(part) not in phrase
    ]


def _is_a_word(part: str, question: str) -> bool:
    """The part is an English word and stands in the question only as one."""
    if fold(part) not in NAMES_THAT_ARE_WORDS:
        return False
    return not re.search(rf"\b{re.escape(part)}\b", question)

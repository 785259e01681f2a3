"""Other names by which an answer may be given, for scoring a model's answer later: collected, never invented.

A surname only where it is the name of nobody else in the picture; short forms of a product only if the text uses them.
"""

from __future__ import annotations

import re

from engine.core.schema import Entity, EntityType
from engine.questions.facts import surname_of
from engine.questions.lexicon import PRODUCT_PHRASES
from engine.questions.text import fold, has_phrase, level


def aliases_of(name: str, entity_type: EntityType, text: str, *, others: tuple[Entity, ...] = ()) -> tuple[str, ...]:
    """Aliases in a fixed order, without the name itself and without doubles."""
    plain = level(name)
    found: list[str] = []
    if entity_type == "person":
        surname = surname_of(plain)
        shared = any(surname in other.name.split() for other in others if level(other.name) != plain)
        if surname and not shared:
            found.append(surname)
        without_middle = re.sub(r"(?<=\s)[A-Z]\.\s+", "", plain)
        found.append(without_middle)
        found += [
            match[1] for match in re.finditer(rf"{re.escape(plain)},? (?:known|better known) as ([A-Z][\w-]+)", text)
        ]
    else:
        parts = plain.split()
        if len(parts) > 1:
            tail = " ".join(parts[1:])
            if re.search(rf"\b(?:the|The) {re.escape(tail)}\b", text):
                found.append(tail)
        found += [match[0] for match in re.finditer(rf"{re.escape(plain)} [a-z-]+", level(text)) if _named(match[0])]
    ascii_form = level(name).encode("ascii", "ignore").decode()
    if fold(ascii_form) != fold(plain) and fold(plain).isascii():
        found.append(" ".join(part.capitalize() for part in fold(plain).split()))
    unique: dict[str, str] = {}
    for alias in found:
        if alias and fold(alias) != fold(plain):
            unique.setdefault(fold(alias), alias)
    return tuple(sorted(unique.values()))


def mentioned(name: str, aliases: tuple[str, ...], text: str) -> bool:
    """Whether the text names the entity by any of its names."""
    return any(has_phrase(text, form) for form in (name, *aliases))


def same_name(given: str, answer: str, aliases: tuple[str, ...]) -> bool:
    """Whether a free answer names the entity: one of its names is in it, or it is one of the names."""
    return any(has_phrase(given, name) for name in (answer, *aliases))


def _named(text: str) -> bool:
    return text.split()[-1] in PRODUCT_PHRASES

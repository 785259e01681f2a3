"""Does the caption say that the entity is in the picture?"""

from __future__ import annotations

import re

from engine.core.schema import Article
from engine.questions.draft import Draft
from engine.questions.facts import surname_of
from engine.questions.text import fold, has_phrase

#: What makes a named one absent: a thing made for, of, or by someone.
_ABSENT = re.compile(
    r"\b(?:statue|bust|grave|tomb|supporters|fans|office|home|house|death|funeral|memory|book|song|film|biography|wife|"
    r"husband|son|daughter|parents|victims?) of(?: the)?(?: late)? $|\b(?:photo|picture|photograph|image|handout) by $"
)


def entity_not_pictured(draft: Draft, article: Article) -> str | None:
    """Why the picture cannot be said to show the entity, or None."""
    caption = draft.image.caption
    for entity in draft.entities:
        if (
            draft.entity_type == "product"
            and has_phrase(entity.name, draft.answer)
            and fold(entity.name) != fold(draft.answer)
        ):
            return f"'{draft.answer}' is only a part of the name '{entity.name}'"
    names = [draft.answer, *draft.aliases]
    if draft.entity_type == "person" and surname_of(draft.answer):
        names.append(surname_of(draft.answer))
    for name in names:
        if not has_phrase(caption, name):
            continue
        head = fold(caption)[: fold(caption).find(fold(name))]
        if _ABSENT.search(head if head.endswith(" ") else f"{head} "):
            return f"the caption speaks of something of '{name}', not of '{name}'"
        return None
    return f"the caption does not name '{draft.answer}'"

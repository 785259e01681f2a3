"""Whom nobody may ask for: people who opted out, minors, and persons without a public role."""

from __future__ import annotations

from engine.core.config import AskSection
from engine.questions.draft import Draft
from engine.questions.encyclopedia import Encyclopedia
from engine.questions.index import NewsIndex
from engine.questions.text import has_phrase

#: Publishers that must state the role independently.
MIN_PUBLISHERS = 2


def opted_out(draft: Draft, config: AskSection) -> str | None:
    """Whether the answer or a full alias stands in the opt-out list."""
    for name in config.opt_out:
        if any(has_phrase(form, name) for form in (draft.answer, *draft.aliases)):
            return "the name is on the opt-out list"
    return None


def minor(draft: Draft, index: NewsIndex) -> str | None:
    """Whether any article of the window says that the person is a child."""
    if draft.entity_type != "person":
        return None
    return (
        "an article gives an age below 18, or calls the person a child" if index.child_evidence(draft.answer) else None
    )


async def private_person(draft: Draft, index: NewsIndex, encyclopedia: Encyclopedia | None) -> str | None:
    """Why the person cannot be shown to be public, or None: two publishers state a role, or an encyclopedia knows."""
    if draft.entity_type != "person":
        return None
    witnesses = index.roles_of(draft.answer)
    if len(witnesses) >= MIN_PUBLISHERS:
        return None
    if encyclopedia is not None and await encyclopedia.knows(draft.answer):
        return None
    asked = "no encyclopedia has an entry" if encyclopedia is not None else "no encyclopedia was asked"
    return f"{len(witnesses)} of {MIN_PUBLISHERS} publishers state a public role, and {asked}"

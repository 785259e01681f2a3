"""Can the answer be read off the picture? Names on jerseys, logos, subtitles; needs someone who reads pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.core.protocols import Blobs, ChatModel, ChatRequest
from engine.core.schema import ImageRef
from engine.llm.prompts import load_prompt
from engine.questions.draft import Draft
from engine.questions.facts import surname_of
from engine.questions.text import atoms, has_phrase, spellings

_SCHEMA = {
    "type": "object",
    "properties": {"texts": {"type": "array", "items": {"type": "string", "maxLength": 300}}},
    "required": ["texts"],
}


class PictureReader(Protocol):
    """Reads the legible text in a picture; None if it could not be read (which is not the same as no text)."""

    async def read(self, image: ImageRef) -> Sequence[str] | None: ...


class ModelReader:
    """A picture reader that asks a chat model that sees images."""

    def __init__(self, chat: ChatModel, blobs: Blobs) -> None:
        self.chat = chat
        self.blobs = blobs
        self.prompt = load_prompt("engine.questions", "read_v1")

    async def read(self, image: ImageRef) -> Sequence[str] | None:
        system, user = self.prompt.fill()
        reply = await self.chat.complete(
            ChatRequest(
                system=system,
                user=user,
                schema=_SCHEMA,
                schema_name="texts",
                images=(self.blobs.get(image.sha256, image.ext),),
                max_tokens=600,
                purpose="ask.read",
            )
        )
        texts = reply.data.get("texts") if reply.status == "ok" and reply.data is not None else None
        return [str(text) for text in texts] if isinstance(texts, list) else None


def answer_readable(draft: Draft, texts: Sequence[str]) -> str | None:
    """Which part of the answer stands in the picture's text, or None."""
    read = " ".join(texts)
    names = [draft.answer, *draft.aliases]
    if draft.entity_type == "person" and surname_of(draft.answer):
        names.append(surname_of(draft.answer))
    for name in names:
        if has_phrase(read, name):
            return f"'{name}' can be read in the picture"
    # lettering is often set without spaces or with a line break inside
    squeezed = "".join(atoms(read))
    for form in spellings("".join(atoms(draft.answer))):
        if len(form) >= 5 and form in squeezed:
            return f"'{draft.answer}' can be read in the picture"
    return None

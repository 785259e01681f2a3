"""What a model answers without the news: already known, or seen in the picture alone. Stored with the question.

Two requests at most per question, both through the reply cache, so the result never needs a second run. A model that
refuses or fails gives no answer, which is not the same as a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.protocols import Blobs, ChatModel, ChatReply, ChatRequest
from engine.core.schema import BlindAnswer, ImageRef
from engine.llm.prompts import Prompt, load_prompt
from engine.questions.aliases import same_name
from engine.questions.draft import Draft

_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 200}, "known": {"type": "boolean"}},
    "required": ["answer", "known"],
}
PROMPT = "blind_v1"


@dataclass(frozen=True, slots=True)
class Blind:
    """A model to be asked without the news; with the picture as well if it sees pictures."""

    chat: ChatModel
    blobs: Blobs | None = None
    sees_images: bool = False

    def prompt(self) -> Prompt:
        return load_prompt("engine.questions", PROMPT)


async def blind_answers(draft: Draft, blind: Blind) -> tuple[tuple[BlindAnswer, ...], str]:
    """The answers given, and why one lacks (empty if none does)."""
    found: list[BlindAnswer] = []
    problems: list[str] = []
    prompt = blind.prompt()
    for image in (None, draft.image) if blind.sees_images and blind.blobs is not None else (None,):
        reply = await blind.chat.complete(_request(draft, prompt, image, blind))
        answer = _answer(reply)
        if answer is None:
            problems.append(f"{'with' if image else 'without'} the picture: {reply.status}")
            continue
        matches = bool(answer) and same_name(answer, draft.answer, draft.aliases)
        found.append(BlindAnswer(model=blind.chat.name, with_image=image is not None, answer=answer, matches=matches))
    return tuple(found), "; ".join(problems)


def known_blind(answers: tuple[BlindAnswer, ...]) -> str | None:
    """Whether a model answered rightly with neither news nor picture, or None."""
    for item in answers:
        if item.matches and not item.with_image:
            return f"{item.model} answers it without the news and without the picture"
    return None


def _request(draft: Draft, prompt: Prompt, image: ImageRef | None, blind: Blind) -> ChatRequest:
    system, user = prompt.fill(question=draft.question, kind=draft.entity_type)
    pictures = (blind.blobs.get(image.sha256, image.ext),) if image is not None and blind.blobs is not None else ()
    return ChatRequest(
        system=system,
        user=user,
        schema=_SCHEMA,
        schema_name="answer",
        images=pictures,
        max_tokens=200,
        purpose="ask.blind",
    )


def _answer(reply: ChatReply) -> str | None:
    if reply.status != "ok" or reply.data is None:
        return None
    return str(reply.data["answer"]).strip() if reply.data["known"] else ""

"""What all chat models here share: asking again after a cut or unusable reply, and making a reply of a body.

How one request gets its answer (live, from the cache only, by batch) is the subclass's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.core.config import LlmSection
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm import wire
from engine.llm.structured import NotStructured, read_object

#: A cut reply is asked for again with a doubled limit this often.
LONGER_TRIES = 2
#: Replies that are final or were paid: these are stored.
STORED = frozenset({"ok", "refused", "truncated", "filtered", "empty", "invalid"})


def chat_settings(config: LlmSection) -> dict[str, Any]:
    """What of the config decides a reply, beside the request; part of each request's digest."""
    return {key: value for key, value in config.keyed().items() if key != "sees_images"}


class Asking(ABC):
    """A chat model that asks again where that helps."""

    name: str
    sees_images: bool = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """A reply, from the cache if it was ever paid for.

        A cut reply is asked for again with a higher limit, an unusable one once with the complaint added; a refusal
        is final. Pictures are sent only to a model that takes them (`[llm] sees_images`). Raises `TransientError`,
        `QuotaExhausted`, `BudgetSpent`, `ConfigError`.
        """
        asked = request if self.sees_images else replace(request, images=())
        reply = await self.once(asked)
        for _ in range(LONGER_TRIES):
            if reply.status != "truncated":
                break
            asked = replace(asked, max_tokens=asked.max_tokens * 2)
            reply = await self.once(asked)
        if reply.status == "invalid":
            told = f"Your last reply could not be used: {reply.detail}. Reply again with the JSON object only."
            reply = await self.once(replace(asked, user=f"{asked.user}\n\n{told}"))
        return reply

    @abstractmethod
    async def once(self, request: ChatRequest) -> ChatReply:
        """The reply to exactly this request."""


def outcome_of(found: Mapping[str, Any] | None, config: LlmSection) -> wire.Outcome:
    """The outcome of a decoded body of the config's endpoint; None is a body that was no JSON object."""
    if found is None:
        return wire.Outcome("error", detail="HTTP 200 with something that is not a JSON object")
    return wire.read_chat(found) if config.api == "chat" else wire.read_responses(found)


def reply_of(
    outcome: wire.Outcome, *, schema: Mapping[str, object] | None, guessed_in: int, model: str, usd: float | None
) -> ChatReply:
    """The outcome as a reply, its text held against the schema that was asked for."""
    tokens_in, tokens_out = tokens_of(outcome, guessed_in=guessed_in)
    reply = ChatReply(
        status=outcome.status,
        text=outcome.text,
        model=outcome.model or model,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        usd=usd or 0.0,
        detail=outcome.detail,
    )
    if reply.status != "ok" or schema is None:
        return reply
    try:
        return replace(reply, data=read_object(reply.text, schema))
    except NotStructured as error:
        return replace(reply, status="invalid", detail=str(error))


def tokens_of(outcome: wire.Outcome, *, guessed_in: int) -> tuple[int, int]:
    """Tokens in and out; guessed upwards where the server does not count, so that nothing looks free."""
    if outcome.status == "error":
        return outcome.tokens_in or 0, outcome.tokens_out or 0
    tokens_in = outcome.tokens_in if outcome.tokens_in is not None else guessed_in
    tokens_out = outcome.tokens_out if outcome.tokens_out is not None else len(outcome.text.encode()) // 3
    return tokens_in, tokens_out

"""Knowing what would be asked before anything is spent: for a dry run's estimate, and for batches.

`PlanningChat` stands in for the live client. It answers from the cache, so a plan is exact for what was paid already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.core.config import LlmSection
from engine.core.errors import TransientError
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm import wire
from engine.llm.asking import Asking, chat_settings
from engine.llm.cache import ReplyCache, request_digest

#: Four letters make a token of English text; a reply of ours has some 160 tokens (two pairs of questions).
LETTERS_PER_TOKEN, LIKELY_OUT, IMAGE_TOKENS = 4, 160, 1_000


class Deferred(TransientError):
    """The reply is not in the cache yet: the request was noted, not sent."""


class PlanningChat(Asking):
    """Answers from the cache; what lacks goes into `wanted` (digest to request) and raises `Deferred`."""

    def __init__(self, config: LlmSection, *, cache: Path) -> None:
        self.name = config.model
        self.sees_images = config.sees_images
        self.wanted: dict[str, ChatRequest] = {}
        self.answered = 0
        self._settings = chat_settings(config)
        self._cache = ReplyCache(cache)

    async def once(self, request: ChatRequest) -> ChatReply:
        digest = request_digest(request, self._settings)
        found = self._cache.get(digest)
        if found is not None:
            self.answered += 1
            return found
        self.wanted[digest] = request
        raise Deferred("this reply is not there yet")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the wanted requests would cost: likely, and at most (with every reply as long as allowed).

    Money is None where the model has no price. Replies that are cut or unusable are asked for again, which is in
    neither figure; nor are questions to a blind model that depend on replies not there yet.
    """

    requests: int
    answered: int
    tokens_in: int
    tokens_in_most: int
    tokens_out: int
    tokens_out_most: int
    usd: float | None
    usd_most: float | None


def estimate(chat: PlanningChat, *, prices: Mapping[str, tuple[float, float]], discount: float = 1.0) -> Estimate:
    """The estimate for what a planning run noted; `discount` is the batch's."""
    wanted = chat.wanted.values()
    likely_in = sum(_likely(request) for request in wanted)
    most_in = sum(wire.estimate_tokens(request) for request in wanted)
    likely_out = sum(min(LIKELY_OUT, request.max_tokens) for request in wanted)
    most_out = sum(request.max_tokens for request in wanted)
    price = prices.get(chat.name)

    def usd(tokens_in: int, tokens_out: int) -> float | None:
        return None if price is None else discount * (tokens_in * price[0] + tokens_out * price[1]) / 1_000_000

    return Estimate(
        len(chat.wanted),
        chat.answered,
        likely_in,
        most_in,
        likely_out,
        most_out,
        usd(likely_in, likely_out),
        usd(most_in, most_out),
    )


def _likely(request: ChatRequest) -> int:
    letters = len(request.system) + len(request.user) + (len(str(request.schema)) if request.schema else 0)
    return letters // LETTERS_PER_TOKEN + IMAGE_TOKENS * len(request.images)

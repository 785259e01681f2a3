"""One exchange with the endpoint as the chat client needs it: with a place among those under way, and paid.

What all requests of a client share lies here: how many may be under way, the wait that one of them was asked for, the
way of asking that the server takes, the ledger, and the error that ends them all. What an answer is good for, and
whether to ask again, is the client's business.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from engine.core.config import LlmSection
from engine.core.errors import NestError
from engine.core.protocols import ChatRequest
from engine.llm import wire
from engine.llm.asking import outcome_of, tokens_of
from engine.llm.endpoint import Answer, Endpoint
from engine.llm.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Exchanged:
    """An answer, what it says (`body` and `outcome` of status 200 alone), how it was asked, what it costs (None
    without a known price), and the seconds that the request waited for its place."""

    answer: Answer
    body: dict[str, Any] | None
    outcome: wire.Outcome | None
    dialect: wire.Dialect
    usd: float | None
    queued_s: float


class Exchanges:
    """Exchanges of one model under its limits; `stopped` is the error that ends all further ones."""

    def __init__(self, config: LlmSection, *, endpoint: Endpoint, ledger: Ledger) -> None:
        self.config = config
        self.endpoint = endpoint
        self.ledger = ledger
        self.stopped: NestError | None = None
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._dialect = wire.Dialect.of(config)
        self._not_before = 0.0

    async def paid(self, request: ChatRequest) -> Exchanged:
        """One exchange, entered into the ledger. Raises `BudgetSpent` before it, or what `stopped` says.

        A place among those under way is held only while the server has the request: what comes before and after must
        not keep another one waiting.
        """
        guessed_in = wire.estimate_tokens(request)
        tokens = guessed_in + request.max_tokens
        usd = self.ledger.price(self.config.model, guessed_in, request.max_tokens)
        dialect = self._dialect
        body = wire.body_of(request, self.config, dialect)
        held = False
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        try:
            async with self._slots:
                queued = loop.time() - arrived
                await self._wait_for_others()
                if self._dialect != dialect:  # another request has found out meanwhile
                    dialect = self._dialect
                    body = wire.body_of(request, self.config, dialect)
                await self.ledger.hold(usd=usd, tokens=tokens)
                held = True
                answer = await self.endpoint.create(body)
            return self._entered(request, answer, dialect, guessed_in=guessed_in, queued_s=queued)
        finally:
            if held:
                await self.ledger.release(usd=usd, tokens=tokens)

    def give_way(self, dialect: wire.Dialect, complaint: str) -> bool:
        """Ask in another way after a complaint about this one; False if there is none left."""
        if self._dialect != dialect:
            return True  # another request has found out meanwhile
        found = wire.adapt(dialect, complaint, pinned=self.config.structured != "auto")
        if found is None:
            return False
        self._dialect = found
        return True

    def none_before(self, seconds: float) -> None:
        """A limit that one request met holds for all."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait, but not longer than until all is stopped."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (rest := until - loop.time()) > 0:
            self.raise_stop()
            await asyncio.sleep(min(rest, 1.0))

    def raise_stop(self) -> None:
        if self.stopped is not None:
            raise type(self.stopped)(str(self.stopped))

    def _entered(
        self, request: ChatRequest, answer: Answer, dialect: wire.Dialect, *, guessed_in: int, queued_s: float
    ) -> Exchanged:
        """Into the ledger before the cache: a kill between the two must not hide what was paid."""
        tokens_in = tokens_out = 0
        usd: float | None = 0.0
        body = outcome = None
        if answer.status == 200:
            body = answer.json()
            outcome = outcome_of(body, self.config)
            tokens_in, tokens_out = tokens_of(outcome, guessed_in=guessed_in)
            usd = self.ledger.price(self.config.model, tokens_in, tokens_out)
        if answer.reached:
            self.ledger.record(
                kind="vision" if request.images else "llm",
                purpose=request.purpose or "chat",
                model=self.config.model,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                usd=usd,
                seconds=answer.seconds,
                failed=answer.status != 200,
            )
        return Exchanged(answer, body, outcome, dialect, usd, queued_s)

    async def _wait_for_others(self) -> None:
        loop = asyncio.get_running_loop()
        while (rest := self._not_before - loop.time()) > 0:
            await self.sleep(rest)
        self.raise_stop()

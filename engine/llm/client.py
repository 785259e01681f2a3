"""The chat client: any OpenAI-compatible endpoint behind the `ChatModel` seam, through the openai SDK.

It asks the cache first, tries again where a server asks for it or fails, and stores each reply before it is used (how
a request gets its place, is phrased and paid is `exchange`'s business). A bad reply is a `ChatReply` with its status;
a bad situation is an exception. Prompts and what a reply means are the callers' business.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.core.config import LlmSection
from engine.core.errors import ConfigError, NestError, TransientError
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm import wire
from engine.llm.asking import STORED, Asking, chat_settings, reply_of
from engine.llm.cache import ReplyCache, request_digest
from engine.llm.endpoint import Endpoint
from engine.llm.exchange import Exchanges
from engine.llm.ledger import Ledger
from engine.llm.retry import Advice, advise, backoff_s
from engine.llm.standing import SUSPICIOUS, Silence, Standing, is_completion, what_it_is
from engine.llm.stopping import KEY_VARIABLE, stop_error

#: A server that answers 200 without a reply is asked again this often; then the item is given up.
EMPTY_TRIES = 3


class OpenAIChat(Asking):
    """A chat model behind an OpenAI-compatible endpoint; use as `async with`.

    Raises `ConfigError` at once for a missing model, key or price. `environ` is only read for `OPENAI_BASE_URL`.
    """

    def __init__(
        self,
        config: LlmSection,
        *,
        api_key: str | None,
        cache: Path,
        ledger: Ledger | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if not config.model:
            raise ConfigError("[llm] model is empty: name a pinned model id, e.g. gpt-4.1-mini-2025-04-14")
        if not api_key:
            raise ConfigError(f"{KEY_VARIABLE} is not set: the model '{config.model}' needs the endpoint's key there")
        self.config = config
        self.name = config.model
        self.sees_images = config.sees_images
        self.endpoint = Endpoint(config, api_key=api_key, environ=os.environ if environ is None else environ)
        self.ledger = ledger or Ledger()
        self.ledger.adopt(config)
        self.ledger.require_price(config.model)
        self.cache = ReplyCache(cache)
        self.standing = Standing()
        self.silence = Silence(self.endpoint.url)
        self._key = api_key
        self._settings = chat_settings(config)
        self._exchanges = Exchanges(config, endpoint=self.endpoint, ledger=self.ledger)
        self._flights: dict[str, asyncio.Future[ChatReply]] = {}
        self._probing = asyncio.Lock()

    async def __aenter__(self) -> OpenAIChat:
        return self

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        if kind is None and self._exchanges.stopped is None:
            self._store_held()
        await self.endpoint.close()

    # ------------------------------------------------------------ one request

    async def once(self, request: ChatRequest) -> ChatReply:
        """The reply to exactly this request; asked twice at a time it is sent once."""
        digest = request_digest(request, self._settings)
        stored = self.cache.get(digest)
        if stored is not None:
            if stored.status != "empty":
                self.standing.witness = self.standing.witness or request
            return stored
        if digest in self.standing.held:
            return replace(self.standing.held[digest][0], from_cache=True, usd=0.0)
        flight = self._flights.get(digest)
        if flight is not None:
            reply = await asyncio.shield(flight)
            return replace(reply, from_cache=True, usd=0.0)
        flight = asyncio.get_running_loop().create_future()
        self._flights[digest] = flight
        try:
            reply, raw = await self._ask(request)
            if reply.status == "empty" and not self.standing.completions:
                self.standing.held[digest] = (reply, raw)  # stored when it is clear that a model was behind it
            elif reply.status in STORED:
                self.cache.put(digest, reply, raw=raw)
            flight.set_result(reply)
            return reply
        except BaseException as error:
            if not flight.done():
                shown = error if isinstance(error, Exception) else TransientError("the request was given up")
                flight.set_exception(shown)
                flight.exception()  # seen: nobody else may be waiting
            raise
        finally:
            del self._flights[digest]

    async def _ask(self, request: ChatRequest) -> tuple[ChatReply, dict[str, Any] | None]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        good_before = self.standing.completions
        attempt = hollow = 0
        while True:
            found = await self._exchanges.paid(request)
            answer, outcome = found.answer, found.outcome
            started += found.queued_s  # patience is for the server, not for the queue in front of it
            if outcome is not None:
                reply = self._reply(request, outcome, usd=found.usd)
                self.silence.broken()
                if is_completion(outcome):
                    self._good(request)
                    return reply, found.body
                self.standing.bad(what_it_is(answer, outcome))
                hollow += 1
                if reply.status in STORED or hollow >= EMPTY_TRIES:
                    await self._judge()
                    return reply, found.body
                advice = Advice("retry", None, "server", outcome.detail)
            elif answer.status == 0:
                advice = Advice("retry", None, "unreachable", answer.body.decode("utf-8", "replace"))
            else:
                advice = advise(answer.status, answer.headers, answer.body, now=datetime.now(UTC))
            if advice.action == "adapt":
                if self._exchanges.give_way(found.dialect, advice.message):
                    continue
                advice = replace(advice, action="stop_item")
            if advice.action == "shorten":
                return ChatReply("too_long", detail=advice.message, model=self.name), None
            if advice.action == "stop_item":
                self.standing.bad(f"HTTP {answer.status}: {self._safe(advice)}")
                await self._judge()
                return ChatReply("error", detail=f"HTTP {answer.status}: {advice.message}", model=self.name), None
            if advice.action == "stop":
                raise self._stop(advice)
            wait = backoff_s(attempt, first_s=self.config.backoff_s, jitter=random.random())
            wait = advice.seconds if advice.seconds is not None else wait
            attempt += 1
            impatient = self._impatient(advice, wait, started=started, tries=attempt, healthy=good_before)
            if impatient is not None:
                return impatient, None
            if answer.status != 200:
                cause = self._safe(advice) if answer.status == 0 else f"HTTP {answer.status}: {self._safe(advice)}"
                now = loop.time()
                self.silence.failed(cause, wait=wait, left=started + self.config.patience_s - now, now=now)
            if advice.why == "limit":
                self._exchanges.none_before(wait)
            await self._exchanges.sleep(wait)

    def _impatient(self, advice: Advice, wait: float, *, started: float, tries: int, healthy: int) -> ChatReply | None:
        """What to return instead of waiting on, or raise `TransientError`."""
        where = f"the model endpoint {self.endpoint.url}"
        if wait > self.config.max_wait_s:
            raise TransientError(
                f"{where} asks to wait {wait:.0f} s, max_wait_s is {self.config.max_wait_s:.0f}: run again later"
            )
        elapsed = asyncio.get_running_loop().time() - started
        if elapsed + wait <= self.config.patience_s:
            return None
        if self.standing.completions > healthy and advice.why == "server":
            # it answers others: this one request is what it cannot digest
            return ChatReply("error", detail=f"no answer in {tries} tries: {advice.message}", model=self.name)
        raise TransientError(
            f"{where} gave no answer in {tries} tries over {elapsed:.0f} s ({advice.message or advice.why}): check "
            "that it is up, then run again; what was answered is kept"
        )

    def _reply(self, request: ChatRequest, outcome: wire.Outcome, *, usd: float | None) -> ChatReply:
        guessed = wire.estimate_tokens(request)
        return reply_of(outcome, schema=request.schema, guessed_in=guessed, model=self.name, usd=usd)

    # ------------------------------------------------------------ what the endpoint is

    @property
    def doubtful(self) -> bool:
        """Whether what was lost since the last chat completion may yet be held against the endpoint."""
        return self.standing.bad_in_row > 0

    async def vouch(self) -> None:
        """At the end of the work: raises `TransientError` if no answer was a chat completion, see `Standing`."""
        if self.doubtful and not self.standing.completions:
            await self._judge(at_end=True)
        self.standing.bad_in_row = 0
        self._store_held()

    async def _judge(self, *, at_end: bool = False) -> None:
        async with self._probing:
            self._exchanges.raise_stop()
            if self.standing.bad_in_row < (1 if at_end else SUSPICIOUS):
                return
            witness = self.standing.witness
            if witness is not None:
                outcome = (await self._exchanges.paid(witness)).outcome
                if outcome is not None and is_completion(outcome):
                    self._good(witness)
                    return
            self.standing.held.clear()
            self._exchanges.stopped = TransientError(
                f"the model endpoint {self.endpoint.url} answers with {self.standing.last_bad}, not with chat "
                f"completions ({self.standing.bad_in_row} times in a row): check [llm] base_url (or OPENAI_BASE_URL) "
                "and model, then run again; what was good is kept"
            )
            self._exchanges.raise_stop()

    def _good(self, request: ChatRequest) -> None:
        self.standing.good(request)
        self.silence.broken()
        self._store_held()

    def _store_held(self) -> None:
        while self.standing.held:
            digest, (reply, raw) = self.standing.held.popitem()
            self.cache.put(digest, reply, raw=raw)

    # ------------------------------------------------------------ stopping

    def _stop(self, advice: Advice) -> NestError:
        found = stop_error(
            advice,
            url=self.endpoint.url,
            model=self.name,
            told=self._safe(advice),
            went_well=self.standing.completions > 0,
        )
        self._exchanges.stopped = found
        return found

    def _safe(self, advice: Advice) -> str:
        # servers like to repeat a part of a wrong key
        return "invalid key" if advice.why == "key" else advice.message.replace(self._key, "***")

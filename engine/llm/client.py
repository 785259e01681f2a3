"""The chat client: any OpenAI-compatible endpoint behind the `ChatModel` seam, through the openai SDK.

It asks the cache first, keeps at most `max_in_flight` requests under way, waits itself where a server asks for it,
finds out which form of structured output the server takes, pays into the ledger, and stores each reply before it is
used. A bad reply is a `ChatReply` with its status; a bad situation is an exception. Prompts and what a reply means
are the callers' business.
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
from engine.llm.asking import STORED, Asking, chat_settings, outcome_of, reply_of, tokens_of
from engine.llm.cache import ReplyCache, request_digest
from engine.llm.endpoint import Answer, Endpoint
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
        self._key = api_key
        self._settings = chat_settings(config)
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._dialect = wire.Dialect.of(config)
        self._flights: dict[str, asyncio.Future[ChatReply]] = {}
        self._not_before = 0.0
        self.standing = Standing()
        self.silence = Silence(self.endpoint.url)
        self._probing = asyncio.Lock()
        self._stopped: NestError | None = None

    async def __aenter__(self) -> OpenAIChat:
        return self

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        if kind is None and self._stopped is None:
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
            answer, dialect, queued = await self._paid_exchange(request)
            started += queued  # patience is for the server, not for the queue in front of it
            if answer.status == 200:
                outcome = outcome_of(answer.json(), self.config)
                reply = self._reply(request, outcome)
                self.silence.broken()
                if is_completion(outcome):
                    self._good(request)
                    return reply, answer.json()
                self.standing.bad(what_it_is(answer, outcome))
                hollow += 1
                if reply.status in STORED or hollow >= EMPTY_TRIES:
                    await self._judge()
                    return reply, answer.json()
                advice = Advice("retry", None, "server", outcome.detail)
            elif answer.status == 0:
                advice = Advice("retry", None, "unreachable", answer.body.decode("utf-8", "replace"))
            else:
                advice = advise(answer.status, answer.headers, answer.body, now=datetime.now(UTC))
            if advice.action == "adapt":
                if self._give_way(dialect, advice):
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
                self._not_before = max(self._not_before, loop.time() + wait)
            await self._sleep(wait)

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

    async def _paid_exchange(self, request: ChatRequest) -> tuple[Answer, wire.Dialect, float]:
        """One exchange, entered into the ledger; also how it was asked, and the seconds spent waiting for a place.

        A place among those under way is held only while the server has the request: what comes before and after must
        not keep another one waiting.
        """
        tokens = wire.estimate_tokens(request) + request.max_tokens
        usd = self.ledger.price(self.name, tokens - request.max_tokens, request.max_tokens)
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
            if answer.reached:
                self._enter(request, answer)
        finally:
            if held:
                await self.ledger.release(usd=usd, tokens=tokens)
        return answer, dialect, queued

    def _enter(self, request: ChatRequest, answer: Answer) -> None:
        """Into the ledger before the cache: a kill between the two must not hide what was paid."""
        tokens_in = tokens_out = 0
        usd: float | None = 0.0
        if answer.status == 200:
            outcome = outcome_of(answer.json(), self.config)
            tokens_in, tokens_out = tokens_of(outcome, guessed_in=wire.estimate_tokens(request))
            usd = self.ledger.price(self.name, tokens_in, tokens_out)
        self.ledger.record(
            kind="vision" if request.images else "llm",
            purpose=request.purpose or "chat",
            model=self.name,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=usd,
            seconds=answer.seconds,
            failed=answer.status != 200,
        )

    def _reply(self, request: ChatRequest, outcome: wire.Outcome) -> ChatReply:
        guessed = wire.estimate_tokens(request)
        usd = self.ledger.price(self.name, *tokens_of(outcome, guessed_in=guessed))
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
            self._raise_stop()
            if self.standing.bad_in_row < (1 if at_end else SUSPICIOUS):
                return
            witness = self.standing.witness
            if witness is not None:
                answer, _, _ = await self._paid_exchange(witness)
                if answer.status == 200 and is_completion(outcome_of(answer.json(), self.config)):
                    self._good(witness)
                    return
            self.standing.held.clear()
            self._stopped = TransientError(
                f"the model endpoint {self.endpoint.url} answers with {self.standing.last_bad}, not with chat "
                f"completions ({self.standing.bad_in_row} times in a row): check [llm] base_url (or OPENAI_BASE_URL) "
                "and model, then run again; what was good is kept"
            )
            self._raise_stop()

    def _good(self, request: ChatRequest) -> None:
        self.standing.good(request)
        self.silence.broken()
        self._store_held()

    def _store_held(self) -> None:
        while self.standing.held:
            digest, (reply, raw) = self.standing.held.popitem()
            self.cache.put(digest, reply, raw=raw)

    # ------------------------------------------------------------ waiting and stopping

    def _give_way(self, dialect: wire.Dialect, advice: Advice) -> bool:
        if self._dialect != dialect:
            return True  # another request has found out meanwhile
        found = wire.adapt(dialect, advice.message, pinned=self.config.structured != "auto")
        if found is None:
            return False
        self._dialect = found
        return True

    def _stop(self, advice: Advice) -> NestError:
        self._stopped = stop_error(
            advice,
            url=self.endpoint.url,
            model=self.name,
            told=self._safe(advice),
            went_well=self.standing.completions > 0,
        )
        return self._stopped

    def _safe(self, advice: Advice) -> str:
        # servers like to repeat a part of a wrong key
        return "invalid key" if advice.why == "key" else advice.message.replace(self._key, "***")

    async def _wait_for_others(self) -> None:
        """A limit that one request met holds for all."""
        loop = asyncio.get_running_loop()
        while (rest := self._not_before - loop.time()) > 0:
            await self._sleep(rest)
        self._raise_stop()

    async def _sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (rest := until - loop.time()) > 0:
            self._raise_stop()
            await asyncio.sleep(min(rest, 1.0))

    def _raise_stop(self) -> None:
        if self._stopped is not None:
            raise type(self._stopped)(str(self._stopped))

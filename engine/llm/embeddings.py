"""Text embeddings from an OpenAI-compatible endpoint behind the `TextEmbedder` seam, each text paid for once.

A vector is stored by model and text before it is used, so that what is ranked by it can be ranked again without the
endpoint. Texts that are asked for at a time go in one request, and a text that is under way is not sent again. What the
vectors are for is the callers' business.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config import LlmSection
from engine.core.errors import ConfigError, NestError, QuotaExhausted, TerminalError, TransientError
from engine.core.geometry import Floats
from engine.core.protocols import TextVectors
from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes, write_atomic
from engine.llm.endpoint import Answer, Endpoint
from engine.llm.ledger import Ledger
from engine.llm.retry import advise, backoff_s

#: Raised when the meaning of a stored vector changes.
CACHE_VERSION = 1
#: Texts per request; every known server takes that many.
BATCH = 64
#: Characters of a text that are embedded; embedding models read a few thousand tokens, and more is refused.
MAX_CHARS = 8000
#: Characters per token when a server does not say what it counted.
_CHARS_PER_TOKEN = 4


class OpenAIEmbedder:
    """An embedding model; use as `async with`.

    `base_url` replaces that of `config`, whose prices, limits, waits and connections hold here too. `offline` gives
    stored vectors alone. Raises `ConfigError` for a missing model or key.
    """

    def __init__(
        self,
        config: LlmSection,
        *,
        model: str,
        api_key: str | None,
        cache: Path,
        ledger: Ledger | None = None,
        base_url: str = "",
        offline: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if not model:
            raise ConfigError("the embedder 'openai' needs [rose] embed_model: name a pinned text embedding model")
        if not api_key and not offline:
            raise ConfigError(
                f"OPENAI_API_KEY is not set: the embedding model '{model}' needs the endpoint's key there"
            )
        self.name = f"openai:{model}"
        self._model = model
        self._config = config.model_copy(update={"base_url": base_url}) if base_url else config
        self._endpoint = Endpoint(
            self._config, api_key=api_key or "offline", environ=os.environ if environ is None else environ
        )
        self._ledger = ledger or Ledger()
        self._ledger.adopt(config)
        if not offline:
            self._ledger.require_price(model)
        self._cache = cache
        self._offline = offline
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._flights: dict[str, asyncio.Future[list[float]]] = {}

    async def __aenter__(self) -> OpenAIEmbedder:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._endpoint.close()

    async def embed(self, texts: Sequence[str]) -> TextVectors:
        """Vectors of the texts, each of its first `MAX_CHARS` characters; tokens and cost are those of the texts that
        nobody had asked for before."""
        # half a surrogate pair cannot be sent
        texts = [text[:MAX_CHARS].encode("utf-8", "replace").decode() for text in texts]
        found: dict[str, list[float]] = {}
        waiting: dict[str, asyncio.Future[list[float]]] = {}
        new: dict[str, str] = {}
        for text in texts:
            key = self._key(text)
            if key in found or key in waiting or key in new:
                continue
            if key in self._flights:
                waiting[key] = self._flights[key]
            elif (stored := self._stored(key)) is not None:
                found[key] = stored
            else:
                new[key] = text
        tokens, usd = 0, 0.0
        if new:
            tokens, usd = await self._fetch(new, found)
        for key, flight in waiting.items():
            found[key] = await asyncio.shield(flight)
        rows = [found[self._key(text)] for text in texts]
        if len({len(row) for row in rows}) > 1:
            raise TerminalError(
                f"{self.name} gives vectors of several lengths: the model behind the name has changed, name another one"
            )
        return TextVectors(vectors=_unit(rows), tokens=tokens, usd=usd)

    async def _fetch(self, new: Mapping[str, str], found: dict[str, list[float]]) -> tuple[int, float]:
        """Ask for texts by key, store the vectors, put them into `found`; tokens and US dollars."""
        if self._offline:
            raise TransientError(f"offline, and {self.name} was never asked for these texts: go online once")
        loop = asyncio.get_running_loop()
        own = {key: loop.create_future() for key in new}
        self._flights |= own
        tokens, usd = 0, 0.0
        try:
            keys = list(new)
            for start in range(0, len(keys), BATCH):
                part = keys[start : start + BATCH]
                vectors, spent, paid = await self._ask([new[key] for key in part])
                tokens, usd = tokens + spent, usd + paid
                for key, vector in zip(part, vectors, strict=True):
                    self._store(key, vector)
                    found[key] = vector
                    own[key].set_result(vector)
        except BaseException as error:
            shown = error if isinstance(error, Exception) else TransientError("the request was given up")
            for flight in own.values():
                if not flight.done():
                    flight.set_exception(shown)
                    flight.exception()  # seen: nobody else may be waiting
            raise
        finally:
            for key in own:
                del self._flights[key]
        return tokens, usd

    async def _ask(self, texts: Sequence[str]) -> tuple[list[list[float]], int, float]:
        guessed = sum(len(text) for text in texts) // _CHARS_PER_TOKEN + len(texts)
        most = self._ledger.price(self._model, guessed, 0)
        loop = asyncio.get_running_loop()
        started, attempt = loop.time(), 0
        async with self._slots:
            while True:
                await self._ledger.hold(usd=most, tokens=guessed)
                try:
                    answer = await self._endpoint.embed(model=self._model, texts=texts)
                    tokens, usd = self._enter(answer, guessed)
                finally:
                    await self._ledger.release(usd=most, tokens=guessed)
                if answer.status == 200:
                    return self._vectors(answer, len(texts)), tokens, usd
                wait = self._wait(answer, attempt)
                attempt += 1
                if wait > self._config.max_wait_s or loop.time() - started + wait > self._config.patience_s:
                    raise TransientError(
                        f"the embedding endpoint {self._endpoint.url} gave no answer in {attempt} tries "
                        f"({_said(answer)}): check that it is up, then run again; what was answered is kept"
                    )
                await asyncio.sleep(wait)

    def _enter(self, answer: Answer, guessed: int) -> tuple[int, float]:
        """Into the ledger before the cache: a kill between the two must not hide what was paid."""
        if not answer.reached:
            return 0, 0.0
        usage = (answer.json() or {}).get("usage") if answer.status == 200 else None
        told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        tokens = (told if isinstance(told, int) else guessed) if answer.status == 200 else 0
        usd = self._ledger.price(self._model, tokens, 0) if tokens else 0.0
        self._ledger.record(
            kind="llm",
            purpose="rose.embed",
            model=self._model,
            tokens_in=tokens,
            usd=usd,
            seconds=answer.seconds,
            failed=answer.status != 200,
        )
        return tokens, usd or 0.0

    def _wait(self, answer: Answer, attempt: int) -> float:
        """Seconds until the next try. Raises what another try does not mend."""
        if answer.status:
            advice = advise(answer.status, answer.headers, answer.body, now=datetime.now(UTC))
            if advice.action not in ("retry", "wait_own"):
                raise self._final(advice.why, answer)
            if advice.seconds is not None:
                return advice.seconds
        return backoff_s(attempt, first_s=self._config.backoff_s, jitter=random.random())

    def _final(self, why: str, answer: Answer) -> NestError:
        url = self._endpoint.url
        if why == "quota":
            return QuotaExhausted(f"the account at {url} has no quota left: top it up, then run again")
        if why == "key":
            return ConfigError(f"{url} refuses the key in OPENAI_API_KEY: check it")
        if why == "model":
            return ConfigError(
                f"{url} does not know the embedding model '{self._model}' or has no /embeddings: check [rose] "
                "embed_model and embed_url"
            )
        return TerminalError(f"{url} does not take the texts to embed ({_said(answer)})")

    def _vectors(self, answer: Answer, count: int) -> list[list[float]]:
        """The vectors of an answer in the order of the texts. Raises `TerminalError` for another shape."""
        rows = (answer.json() or {}).get("data")
        try:
            placed = {int(row["index"]): [float(value) for value in row["embedding"]] for row in rows or []}
            vectors = [placed[place] for place in range(count)]
        except (KeyError, TypeError, ValueError) as error:
            told = f"{self._endpoint.url} answers in another shape than /embeddings has: {type(error).__name__} {error}"
            raise TerminalError(told) from error
        if len({len(vector) for vector in vectors}) != 1 or not np.isfinite(vectors).all():
            raise TerminalError(f"{self._endpoint.url} gave vectors of different lengths, or with holes in them")
        return vectors

    def _key(self, text: str) -> str:
        told = {"version": CACHE_VERSION, "kind": "embedding", "model": self._model, "text": text}
        return sha256_bytes(canonical_json(told).encode("utf-8", "surrogatepass"))

    def _path(self, key: str) -> Path:
        return self._cache / key[:2] / f"{key}.json"

    def _stored(self, key: str) -> list[float] | None:
        """A stored vector; a damaged file counts as absent."""
        try:
            return [float(value) for value in json.loads(self._path(key).read_text(encoding="utf-8"))["vector"]]
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _store(self, key: str, vector: Sequence[float]) -> None:
        write_atomic(self._path(key), canonical_json({"model": self._model, "vector": list(vector)}).encode())


def _unit(rows: Sequence[Sequence[float]]) -> Floats:
    vectors = np.asarray(rows, np.float64).reshape(len(rows), -1)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0), np.float32)


def _said(answer: Answer) -> Any:
    told = answer.body.decode("utf-8", "replace")[:200]
    return f"HTTP {answer.status}: {told}" if answer.status else told

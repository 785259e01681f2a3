"""Calls to search services' APIs: JSON over HTTP with patience, and errors told apart.

A wrong key is a `ConfigError`, a used-up quota `QuotaExhausted`, a service that stays away a `TransientError`; none of
them is ever "nothing found". Keys are put in by the provider and appear in no message. Pages and images that results
point to are fetched by the guarded client, not here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from engine.core.errors import ConfigError, QuotaExhausted, TerminalError, TransientError
from engine.core.protocols import Meter
from engine.web.retry import PASSING, backoff_s, retry_after_s

#: Tries of one call, and the longest wait that a service may ask for before patience is spent.
TRIES = 5
MAX_WAIT_S = 60.0
_QUOTA_WORDS = ("quota", "daily limit", "billing", "usage limit", "rate_limit_exceeded_monthly")


class Api:
    """One service's client. `name` stands in messages; `secret` describes where its key comes from.

    Close it with the run, or use it as an async context manager.
    """

    def __init__(
        self,
        name: str,
        *,
        secret: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.meter: Meter | None = None
        self._secret = secret
        self._sleep = sleep
        self._client = httpx.AsyncClient(timeout=timeout_s, headers=dict(headers or {}), trust_env=False)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()

    async def get(self, url: str, params: Mapping[str, str | int]) -> dict[str, Any]:
        """The decoded object of a GET."""
        return await self._call("GET", url, params=dict(params))

    async def post(self, url: str, body: Mapping[str, Any], params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The decoded object of a POST."""
        return await self._call("POST", url, params=dict(params or {}), json=dict(body))

    async def _call(self, method: str, url: str, **more: Any) -> dict[str, Any]:
        said = ""
        for attempt in range(TRIES):
            wait: float | None = None
            try:
                answer = await self._request(method, url, **more)
            except httpx.UnsupportedProtocol as error:
                raise ConfigError(f"the address of {self.name} is no http address: {url}") from error
            except httpx.HTTPError as error:
                said = type(error).__name__
            else:
                if answer.status_code == 200:
                    return self._decoded(answer)
                said = f"HTTP {answer.status_code}"
                self._refuse(answer)
                wait = retry_after_s({k.lower(): v for k, v in answer.headers.items()}, datetime.now(UTC))
            if wait is not None and wait > MAX_WAIT_S:
                raise TransientError(f"{self.name} asks to wait {wait:.0f} s: run again then; what is done is kept")
            if attempt + 1 < TRIES:
                await self._sleep(wait if wait is not None else backoff_s(url, attempt))
        raise TransientError(f"{self.name} does not answer ({said}): run again later; what is done is kept")

    async def _request(self, method: str, url: str, **more: Any) -> httpx.Response:
        """One exchange, paid for if there is a meter and the service answered."""
        if self.meter is None:
            return await self._client.request(method, url, **more)
        await self.meter.hold()
        begun, answered = time.monotonic(), False
        try:
            answer = await self._client.request(method, url, **more)
            answered = answer.status_code == 200
            return answer
        finally:
            await self.meter.settle(answered=answered, seconds=time.monotonic() - begun)

    def _refuse(self, answer: httpx.Response) -> None:
        """Raise for statuses that another try does not change."""
        status = answer.status_code
        told = answer.text[:2000].lower()
        if status in (402, 403, 429) and any(word in told for word in _QUOTA_WORDS):
            raise QuotaExhausted(f"the quota of {self.name} is used up (HTTP {status}): run again when it is renewed")
        if status in (401, 403):
            hint = f": check {self._secret}" if self._secret else ""
            raise ConfigError(f"{self.name} refuses the key (HTTP {status}){hint}")
        if status not in PASSING:
            raise TerminalError(f"{self.name} does not understand the request (HTTP {status})")

    def _decoded(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            found = answer.json()
        except ValueError as error:
            hint = ": is its JSON format switched on?" if "html" in answer.headers.get("content-type", "") else ""
            raise ConfigError(f"{self.name} answers with something else than JSON{hint}") from error
        if not isinstance(found, dict):
            raise TerminalError(f"{self.name} answers with a {type(found).__name__} where an object belongs")
        return found

"""The guarded HTTP client: the only way by which anything is fetched.

Per request: a cached copy if there is one, robots.txt, a turn at the host, the request with all limits, redirects
one by one (each checked like a first request), tries again where the failure may pass, the copy for later. What a
body means is the caller's business. Proxies of the environment are not used: they would hide which address is
reached.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from engine.core.config import CollectSection
from engine.core.errors import ConfigError
from engine.core.protocols import Fetched
from engine.core.schema import Code
from engine.web.addresses import AddressBook
from engine.web.bodies import Kind, check_page
from engine.web.cache import HttpCache
from engine.web.errors import FetchError
from engine.web.optout import REMARK_HEADER, header_sign
from engine.web.pacing import Pacer
from engine.web.requests import Requests
from engine.web.robots import RobotsBook, Rules
from engine.web.tdmrep import ReservationBook
from engine.web.transport import GuardedTransport
from engine.web.urls import host_of, request_url


class WebClient:
    """An async context manager that implements `engine.core.protocols.Fetcher`.

    `cache` None keeps nothing. `offline` answers from the cache alone and never opens a connection.
    """

    def __init__(self, config: CollectSection, *, cache: Path | None, offline: bool = False) -> None:
        if offline and cache is None:
            raise ConfigError("collecting offline needs the cache folder of an earlier run")
        self._config = config
        self._cache = HttpCache(cache) if cache is not None else None
        self._offline = offline
        self._pacer = Pacer(
            total=config.max_connections, per_host=config.per_host, delay_s=0.0 if offline else config.per_host_delay_s
        )
        self._robots = RobotsBook(lambda url: self._load_file(url, "robots"))
        self._reserved = ReservationBook(lambda url: self._load_file(url, "tdmrep"))
        self._http: httpx.AsyncClient | None = None
        self._requests: Requests | None = None
        self._running: dict[tuple[str, str], asyncio.Task[Fetched]] = {}

    async def __aenter__(self) -> Self:
        if not self._offline:
            transport = GuardedTransport(
                AddressBook(self._config.resolve, self._config.allow_hosts),
                max_connections=self._config.max_connections,
                verify=ssl.create_default_context(),
            )
            self._http = httpx.AsyncClient(
                transport=transport,
                headers={"User-Agent": self._config.user_agent, "Accept-Encoding": "gzip, deflate"},
                timeout=httpx.Timeout(self._config.timeout_s, pool=None),
                follow_redirects=False,
                trust_env=False,
            )
            self._requests = Requests(self._http, self._config, pacer=self._pacer, permit=self._permit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._robots.aclose()
        await self._reserved.aclose()
        if self._http is not None:
            await self._http.aclose()
            self._http = self._requests = None

    async def fetch(self, url: str, *, kind: Kind) -> Fetched:
        """GET a URL. `Fetched.headers` carries `x-nest-ai-opt-out` where a sign was found and the config says not to
        obey it. Raises `FetchError`, and `TerminalError` where the cache cannot be written.

        The same URL asked for twice at a time is fetched once: photos are shared by stories.
        """
        key = (kind, request_url(url))
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(self._fetch(key[1], kind))
            task.add_done_callback(lambda done: self._done(key, done))
        # one caller who gives up must not cancel the others
        return await asyncio.shield(task)

    def _done(self, key: tuple[str, str], task: asyncio.Task[Fetched]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()

    async def stream(self, url: str) -> AsyncIterator[bytes]:
        """A body in parts, for archives larger than memory; not kept in the cache. Raises `FetchError`."""
        if self._offline:
            raise FetchError(Code.FETCH_FAILED, "offline: archives are read from local files only")
        async for part in self._ask().stream(url):
            yield part

    async def _fetch(self, target: str, kind: Kind) -> Fetched:
        kept = await self._kept(kind, target)
        sign = await self._permit(target, kind)
        if self._offline:
            if kept is None:
                raise FetchError(Code.FETCH_FAILED, "offline, and not in the cache")
            if isinstance(kept, FetchError):
                raise kept
            return self._judged(kept, sign, kind)
        if isinstance(kept, Fetched) and kind in ("page", "image"):
            return self._judged(kept, sign, kind)
        old = kept if isinstance(kept, Fetched) else None
        try:
            fetched = await self._ask().get(target, kind, old)
            if kind == "page":
                check_page(fetched.body)
        except FetchError as error:
            if self._cache is not None:
                await asyncio.to_thread(self._cache.write_failure, kind, target, error)
            raise
        if self._cache is not None and not fetched.from_cache:
            await asyncio.to_thread(self._cache.write, kind, target, fetched)
        return self._judged(fetched, sign, kind)

    def _ask(self) -> Requests:
        if self._requests is None:
            raise RuntimeError("WebClient is used outside its 'async with'")
        return self._requests

    # -- rules

    async def _kept(self, kind: str, url: str) -> Fetched | FetchError | None:
        return None if self._cache is None else await asyncio.to_thread(self._cache.read, kind, url)

    async def _permit(self, url: str, kind: Kind) -> str:
        """Robots for one URL; returns the AI sign if it is not to be obeyed. An API is made for programs and has
        terms of its own, robots.txt is for crawling pages."""
        if kind == "api" or not (self._config.obey_robots or self._config.obey_ai_opt_out):
            return ""
        rules: Rules = await self._robots.rules(url)
        agent = self._config.user_agent
        if self._config.obey_robots:
            rules.check(url, agent)
            self._pacer.slow_down(host_of(url), 0.0 if self._offline else rules.crawl_delay_s(agent))
        sign = rules.ai_sign(url)
        if not sign and kind in ("page", "image"):
            sign = await self._reserved.sign(url)
        if sign and self._config.obey_ai_opt_out:
            raise FetchError(Code.AI_OPT_OUT, sign)
        return sign

    async def permission(self, url: str) -> tuple[bool, str]:
        """Whether a page may be fetched, and what is said about it: why not, an AI sign that is not obeyed, or the
        crawl-delay; empty if there is nothing to say. The page itself is not fetched. Offline nothing is asked."""
        try:
            target = request_url(url)
            sign = await self._permit(target, "page")
            rules = await self._robots.rules(target) if self._config.obey_robots else Rules(None)
        except FetchError as error:
            return False, f"{error.code.value}: {error.detail}"
        delay = rules.crawl_delay_s(self._config.user_agent)
        return True, sign or (f"crawl-delay {delay:g} s" if delay else "")

    def _judged(self, fetched: Fetched, sign: str, kind: Kind) -> Fetched:
        found = sign or header_sign(fetched.headers, image=kind == "image")
        if found and self._config.obey_ai_opt_out:
            raise FetchError(Code.AI_OPT_OUT, found)
        if not found:
            return fetched
        headers = {**fetched.headers, REMARK_HEADER: found}
        return Fetched(fetched.url, fetched.status, headers, fetched.body, fetched.from_cache)

    async def _load_file(self, url: str, kind: str) -> bytes | None:
        """robots.txt or tdmrep.json of an origin: its bytes, None where there is none. Raises `FetchError`."""
        kept = await self._kept(kind, url)
        if self._offline:
            if isinstance(kept, Fetched):
                return kept.body
            # without a record the run that filled the cache never asked, so nothing was forbidden then
            if kept is None or kept.code in (Code.FETCH_GONE, Code.FETCH_FORBIDDEN):
                return None
            raise kept
        try:
            fetched = await self._ask().get(url, "api")
        except FetchError as error:
            if self._cache is not None:
                await asyncio.to_thread(self._cache.write_failure, kind, url, error)
            # every 4xx but "too many requests" says that there are no rules
            if error.code in (Code.FETCH_GONE, Code.FETCH_FORBIDDEN):
                return None
            raise
        if self._cache is not None:
            await asyncio.to_thread(self._cache.write, kind, url, fetched)
        return fetched.body

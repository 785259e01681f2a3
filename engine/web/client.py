"""The guarded HTTP client: the only way by which anything is fetched.

Per request: a cached copy if there is one, robots.txt, a turn at the host, the request with all limits, redirects
one by one (each checked like a first request), tries again where the failure may pass, the copy for later. What a
body means is the caller's business. Proxies of the environment are not used: they would hide which address is
reached.
"""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import httpx

from engine.core.config import CollectSection
from engine.core.errors import ConfigError
from engine.core.protocols import Fetched
from engine.core.schema import Code
from engine.web.addresses import AddressBook
from engine.web.bodies import ACCEPT, MAX_BYTES, DecodeError, Kind, check_page, read_body
from engine.web.cache import HttpCache
from engine.web.errors import FetchError
from engine.web.optout import REMARK_HEADER, header_sign
from engine.web.pacing import Pacer
from engine.web.retry import Retry, backoff_s, status_failure
from engine.web.robots import RobotsBook, Rules
from engine.web.transport import GuardedTransport
from engine.web.urls import host_of, request_url

MAX_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


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
        self._robots = RobotsBook(self._load_robots)
        self._http: httpx.AsyncClient | None = None

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
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._robots.aclose()
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def fetch(self, url: str, *, kind: Kind) -> Fetched:
        """GET a URL. `Fetched.headers` carries `x-nest-ai-opt-out` where a sign was found and the config says not to
        obey it. Raises `FetchError`, and `TerminalError` where the cache cannot be written."""
        target = request_url(url)
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
            fetched = await self._persist(target, kind, old)
            if kind == "page":
                check_page(fetched.body)
        except FetchError as error:
            if self._cache is not None:
                await asyncio.to_thread(self._cache.write_failure, kind, target, error)
            raise
        if self._cache is not None and not fetched.from_cache:
            await asyncio.to_thread(self._cache.write, kind, target, fetched)
        return self._judged(fetched, sign, kind)

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
        if sign and self._config.obey_ai_opt_out:
            raise FetchError(Code.AI_OPT_OUT, sign)
        return sign

    def _judged(self, fetched: Fetched, sign: str, kind: Kind) -> Fetched:
        found = sign or header_sign(fetched.headers, image=kind == "image")
        if found and self._config.obey_ai_opt_out:
            raise FetchError(Code.AI_OPT_OUT, found)
        if not found:
            return fetched
        headers = {**fetched.headers, REMARK_HEADER: found}
        return Fetched(fetched.url, fetched.status, headers, fetched.body, fetched.from_cache)

    async def _load_robots(self, url: str) -> bytes | None:
        kept = await self._kept("robots", url)
        if self._offline:
            if isinstance(kept, Fetched):
                return kept.body
            # without a record the run that filled the cache never asked, so nothing was forbidden then
            if kept is None or kept.code in (Code.FETCH_GONE, Code.FETCH_FORBIDDEN):
                return None
            raise kept
        try:
            fetched = await self._persist(url, "api", None)
        except FetchError as error:
            if self._cache is not None:
                await asyncio.to_thread(self._cache.write_failure, "robots", url, error)
            # every 4xx but "too many requests" says that there are no rules
            if error.code in (Code.FETCH_GONE, Code.FETCH_FORBIDDEN):
                return None
            raise
        if self._cache is not None:
            await asyncio.to_thread(self._cache.write, "robots", url, fetched)
        return fetched.body

    # -- one URL, with patience

    async def _persist(self, url: str, kind: Kind, old: Fetched | None) -> Fetched:
        attempt = 0
        plain = False
        while True:
            try:
                return await self._follow(url, kind, old, plain=plain)
            except Retry as retry:
                allowed = self._config.retries if retry.tries is None else min(retry.tries, self._config.retries)
                wait = backoff_s(url, attempt)
                if retry.after_s is not None:
                    if retry.after_s > self._config.max_retry_after_s:
                        raise FetchError(
                            retry.error.code, f"{retry.error.detail}, and it asks to wait longer than allowed"
                        ) from retry
                    wait = max(wait, retry.after_s)
                if attempt >= allowed:
                    raise retry.error from retry
                attempt += 1
                plain = plain or retry.plain
            self._pacer.hold(host_of(url), wait)

    async def _follow(self, url: str, kind: Kind, old: Fetched | None, *, plain: bool) -> Fetched:
        """One try, along its redirects. Cookies live for this try only: a cookie wall gets its cookie back once, and
        nothing is carried from one article to the next."""
        cookies = httpx.Cookies()
        seen: set[tuple[str, str]] = set()
        here = url
        for _ in range(MAX_REDIRECTS + 1):
            told = repr(sorted((cookie.name, cookie.value or "") for cookie in cookies.jar))
            if (here, told) in seen:
                raise FetchError(Code.FETCH_REDIRECTS, "the redirects go round in a circle")
            seen.add((here, told))
            answer = await self._once(here, kind, old if here == url else None, cookies, plain=plain)
            if isinstance(answer, Fetched):
                return answer
            here = answer
            await self._permit(here, kind)
        raise FetchError(Code.FETCH_REDIRECTS, f"more than {MAX_REDIRECTS} redirects")

    async def _once(
        self, url: str, kind: Kind, old: Fetched | None, cookies: httpx.Cookies, *, plain: bool
    ) -> Fetched | str:
        """One request: a body, or the URL that it redirects to. Raises `FetchError` and `Retry`."""
        if self._http is None:
            raise RuntimeError("WebClient is used outside its 'async with'")
        headers = {"Accept": ACCEPT[kind]}
        if plain:
            headers["Accept-Encoding"] = "identity"
        if old is not None:
            for name, source in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
                if source in old.headers:
                    headers[name] = old.headers[source]
        request = self._http.build_request("GET", url, headers=headers)
        cookies.set_cookie_header(request)
        async with self._pacer.turn(host_of(url)):
            try:
                async with asyncio.timeout(self._config.timeout_s):
                    response = await self._http.send(request, stream=True)
                    try:
                        return await self._read(url, kind, old, cookies, response)
                    finally:
                        await response.aclose()
            except (TimeoutError, httpx.TimeoutException) as error:
                told = f"no complete answer within {self._config.timeout_s:g} s"
                raise Retry(FetchError(Code.FETCH_TIMEOUT, told), tries=1) from error
            except DecodeError as error:
                raise Retry(FetchError(Code.FETCH_FAILED, str(error)), tries=1, plain=True) from error
            except httpx.HTTPError as error:
                raise _transport_failure(error) from error
            except httpx.InvalidURL as error:
                raise FetchError(Code.FETCH_BAD_URL, str(error)) from error
            except OSError as error:
                raise Retry(FetchError(Code.FETCH_FAILED, type(error).__name__)) from error

    async def _read(
        self, url: str, kind: Kind, old: Fetched | None, cookies: httpx.Cookies, response: httpx.Response
    ) -> Fetched | str:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        if status in _REDIRECTS and "location" in headers:
            cookies.extract_cookies(response)
            try:
                return request_url(urljoin(url, headers["location"]))
            except ValueError as error:
                raise FetchError(Code.FETCH_BAD_URL, "redirected to something that is no URL") from error
        if status == 304 and old is not None:
            return Fetched(old.url, old.status, old.headers, old.body, from_cache=True)
        if not 200 <= status <= 299:
            raise status_failure(status, headers, datetime.now(UTC))
        body = await read_body(
            response.aiter_raw(),
            encoding=headers.get("content-encoding", ""),
            limit=MAX_BYTES[kind],
            announced=headers.get("content-length"),
        )
        return Fetched(url, status, headers, body)


def _transport_failure(error: httpx.HTTPError) -> FetchError | Retry:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or "handshake failed"
            return FetchError(Code.FETCH_TLS, f"TLS: {reason}")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.UnsupportedProtocol):
        return FetchError(Code.FETCH_BAD_URL, "only http and https are fetched")
    if isinstance(error, httpx.RemoteProtocolError):
        if "location header" in str(error):
            return FetchError(Code.FETCH_BAD_URL, "redirected to something that is no URL")
        return Retry(FetchError(Code.FETCH_TRUNCATED, "the connection ended before the answer was complete"), tries=1)
    if isinstance(error, httpx.ReadError | httpx.WriteError):
        return Retry(FetchError(Code.FETCH_TRUNCATED, "the connection was cut"), tries=1)
    return Retry(FetchError(Code.FETCH_FAILED, "no connection could be made"))

"""Requests of one URL: a try with all its limits, its redirects one by one, further tries where the failure may pass.

Rules, cache and what a body means are `client`'s. Each hop of a redirect is permitted like a first request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from urllib.parse import urljoin

import httpx

from engine.core.config import CollectSection
from engine.core.protocols import Fetched
from engine.core.schema import Code
from engine.web.bodies import ACCEPT, MAX_BYTES, DecodeError, Kind, read_body
from engine.web.errors import FetchError
from engine.web.pacing import Pacer
from engine.web.retry import Retry, backoff_s, status_failure
from engine.web.urls import host_of, request_url

MAX_REDIRECTS = 10
#: A host that gave no answer at all so many times in a row is left alone for the rest of the run.
DARK_AFTER = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NO_ANSWER = frozenset({Code.FETCH_FAILED, Code.FETCH_TIMEOUT})


class Requests:
    """GET with patience. `permit` raises `FetchError` for a URL that must not be asked for."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        config: CollectSection,
        *,
        pacer: Pacer,
        permit: Callable[[str, Kind], Awaitable[str]],
    ) -> None:
        self._http = http
        self._config = config
        self._pacer = pacer
        self._permit = permit
        self._silent: dict[str, int] = {}

    async def get(self, url: str, kind: Kind, old: Fetched | None = None) -> Fetched:
        """The body of a URL; `old` is revalidated by its ETag and date. Raises `FetchError`."""
        host = host_of(url)
        if self._silent.get(host, 0) >= DARK_AFTER:
            raise FetchError(Code.FETCH_FAILED, f"the host gave no answer {DARK_AFTER} times in a row")
        try:
            found = await self._persist(url, kind, old)
        except FetchError as error:
            self._silent[host] = self._silent.get(host, 0) + 1 if error.code in _NO_ANSWER else 0
            raise
        self._silent[host] = 0
        return found

    async def stream(self, url: str) -> AsyncIterator[bytes]:
        """The body of a URL in parts as it was sent, however long; a pause of `timeout_s` ends it. No further tries.

        Raises `FetchError`, also in the middle.
        """
        here = request_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            await self._permit(here, "feed")
            async with self._pacer.turn(host_of(here)):
                request = self._http.build_request("GET", here, headers={"Accept-Encoding": "identity"})
                try:
                    response = await self._http.send(request, stream=True)
                    try:
                        target = _redirect(here, response)
                        if target is None:
                            if not 200 <= response.status_code <= 299:
                                failure = status_failure(response.status_code, {}, datetime.now(UTC))
                                raise failure.error if isinstance(failure, Retry) else failure
                            async for part in response.aiter_raw():
                                yield part
                            return
                    finally:
                        await response.aclose()
                except httpx.HTTPError as error:
                    failure = _transport_failure(error)
                    raise (failure.error if isinstance(failure, Retry) else failure) from error
            here = target
        raise FetchError(Code.FETCH_REDIRECTS, f"more than {MAX_REDIRECTS} redirects")

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
        if (target := _redirect(url, response)) is not None:
            cookies.extract_cookies(response)
            return target
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


def _redirect(url: str, response: httpx.Response) -> str | None:
    if response.status_code not in _REDIRECTS or "location" not in response.headers:
        return None
    try:
        return request_url(urljoin(url, response.headers["location"]))
    except ValueError as error:
        raise FetchError(Code.FETCH_BAD_URL, "redirected to something that is no URL") from error


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

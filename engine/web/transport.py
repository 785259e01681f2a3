"""The httpx transport whose connections go only to checked addresses.

httpx offers no seam for that, httpcore does: its network backend. TLS still verifies the certificate against the
host's name, since only the address to connect to is chosen here. Retries and limits are `client`'s business.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpcore
import httpx

from engine.core.schema import Code
from engine.web.addresses import AddressBook
from engine.web.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Generator

SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens TCP connections to the addresses an `AddressBook` permits, the first that answers."""

    def __init__(self, book: AddressBook) -> None:
        self._book = book
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        last: Exception | None = None
        for address, real_port in await self._book.find(host, port):
            try:
                return await self._inner.connect_tcp(address, real_port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        if last is None:
            raise httpcore.ConnectError(f"no address for {host}")
        raise last

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise FetchError(Code.FETCH_PRIVATE_ADDRESS, "unix sockets are never fetched from")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterator[bytes], close: httpcore.Response) -> None:
        self._stream = stream
        self._response = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 and HTTP/2 over an httpcore pool with the guarded backend."""

    def __init__(self, book: AddressBook, *, max_connections: int, verify: ssl.SSLContext) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=10.0,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(book),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        outgoing = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _httpx_errors():
            found = await self._pool.handle_async_request(outgoing)
        stream = found.stream
        if not isinstance(stream, AsyncIterator) and not hasattr(stream, "__aiter__"):
            raise httpx.TransportError("the connection pool gave no asynchronous stream")
        return httpx.Response(
            status_code=found.status,
            headers=found.headers,
            stream=_Body(stream, found),  # type: ignore[arg-type]
            extensions=found.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


@contextmanager
def _httpx_errors() -> Generator[None, None, None]:
    """Both libraries name their errors alike; the client above should know only httpx's."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
        httpcore.ProxyError,
    ) as error:
        kind = getattr(httpx, type(error).__name__, httpx.TransportError)
        raise kind(str(error)) from error

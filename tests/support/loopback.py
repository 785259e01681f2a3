"""A small HTTP server on loopback that answers as told, also wrongly: cut bodies, stalls, lies, resets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Request:
    """What came in; header names are lower-case."""

    target: str
    headers: Mapping[str, str]

    @property
    def host(self) -> str:
        return self.headers.get("host", "")


@dataclass
class Reply:
    """An answer. `length` overrides Content-Length; `cut` sends only so many bytes of the body and closes; `raw`
    replaces everything; `reset` closes at once; `first_s` waits before the first byte, `drip_s` after each byte."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    cut: int | None = None
    raw: bytes | None = None
    reset: bool = False
    first_s: float = 0.0
    drip_s: float = 0.0


Answer = Reply | Callable[[Request], Reply | Awaitable[Reply]]


class Site:
    """Routes by "host/path" first, then by "/path"; what is not routed is 404. `seen` lists all requests."""

    def __init__(self, routes: Mapping[str, Answer] | None = None) -> None:
        self.routes: dict[str, Answer] = dict(routes or {})
        self.seen: list[Request] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.netloc}{path}"

    def paths(self) -> list[str]:
        return [request.target for request in self.seen]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # the client went away, which is what many of these tests are about, or the test is over
            return
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        request = Request(lines[0].split(" ")[1], headers)
        self.seen.append(request)
        path = request.target.partition("?")[0]
        host = request.host.partition(":")[0]
        answer = self.routes.get(f"{host}{request.target}") or self.routes.get(f"{host}{path}")
        answer = answer or self.routes.get(request.target) or self.routes.get(path) or Reply(b"not here", 404)
        if not isinstance(answer, Reply):
            made = answer(request)
            answer = made if isinstance(made, Reply) else await made
        return await self._send(answer, writer)

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.first_s:
            await asyncio.sleep(reply.first_s)
        if reply.reset:
            writer.transport.abort()
            return False
        if reply.raw is not None:
            writer.write(reply.raw)
            await writer.drain()
            return False
        length = len(reply.body) if reply.length is None else reply.length
        lines = [f"HTTP/1.1 {reply.status} X", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        body = reply.body if reply.cut is None else reply.body[: reply.cut]
        if reply.drip_s:
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(reply.drip_s)
        else:
            writer.write(body)
        await writer.drain()
        return reply.cut is None and length == len(reply.body)

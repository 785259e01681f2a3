"""A stream of the network as a file for a thread: large archives are read while they come, in bounded memory."""

from __future__ import annotations

import asyncio
import io
import queue
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Parts that may wait between network and reader; a part has up to 64 KiB.
DEPTH = 16
_POLL_S = 0.2


class _Reader(io.RawIOBase):
    def __init__(self, parts: queue.Queue[bytes | BaseException | None]) -> None:
        self._parts = parts
        self._rest = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._rest and not self._ended:
            part = self._parts.get()
            if part is None:
                self._ended = True
            elif isinstance(part, BaseException):
                self._ended = True
                raise part
            else:
                self._rest = part
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@asynccontextmanager
async def pipe(stream: AsyncIterator[bytes]) -> AsyncIterator[io.BufferedReader]:
    """A readable file over a stream. An exception of the stream is raised in the reader."""
    parts: queue.Queue[bytes | BaseException | None] = queue.Queue(DEPTH)
    stop = False

    def put(part: bytes | BaseException | None) -> None:
        while not stop:
            with suppress(queue.Full):
                parts.put(part, timeout=_POLL_S)
                return

    async def pump() -> None:
        try:
            async for part in stream:
                await asyncio.to_thread(put, part)
            await asyncio.to_thread(put, None)
        except Exception as error:  # noqa: BLE001 - handed on to the reader, who raises it
            await asyncio.to_thread(put, error)

    task = asyncio.ensure_future(pump())
    try:
        yield io.BufferedReader(_Reader(parts), buffer_size=65536)
    finally:
        stop = True
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

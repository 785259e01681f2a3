"""What an origin says of itself in a file, read once per run: shared by robots.txt and tdmrep.json."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


class OriginBook(Generic[T]):
    """One value per origin (scheme, host and port); `read` is given the origin, e.g. https://post.example."""

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._found: dict[str, asyncio.Future[T]] = {}

    async def of(self, url: str) -> T:
        """The value of a URL's origin; whoever asks first has it read."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        task = self._found.get(origin)
        if task is None:
            task = self._found[origin] = asyncio.ensure_future(self._read(origin))
        # a cancelled page must not cancel the file that other pages wait for
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """End what is still being read."""
        for task in self._found.values():
            task.cancel()
        await asyncio.gather(*self._found.values(), return_exceptions=True)

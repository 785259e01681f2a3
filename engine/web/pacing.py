"""Politeness: how many requests at a time, and how long between two to one host. One slow host holds up no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Host:
    slots: asyncio.Semaphore
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_at: float = 0.0
    not_before: float = 0.0
    delay_s: float = 0.0


class Pacer:
    """Hands out turns. A host's own crawl-delay wins over the configured delay if it is longer."""

    def __init__(self, *, total: int, per_host: int, delay_s: float) -> None:
        self._total = asyncio.Semaphore(total)
        self._per_host = per_host
        self._delay_s = delay_s
        self._hosts: dict[str, _Host] = {}

    def _host(self, host: str) -> _Host:
        found = self._hosts.get(host)
        if found is None:
            found = self._hosts[host] = _Host(asyncio.Semaphore(self._per_host), delay_s=self._delay_s)
        return found

    def slow_down(self, host: str, delay_s: float) -> None:
        """Take a longer delay between requests to a host (robots.txt's crawl-delay)."""
        entry = self._host(host)
        entry.delay_s = max(entry.delay_s, delay_s)

    def hold(self, host: str, seconds: float) -> None:
        """No request to a host for so long (a Retry-After answer)."""
        entry = self._host(host)
        entry.not_before = max(entry.not_before, time.monotonic() + seconds)

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a place at the host and, only then, for one of the run's connections."""
        entry = self._host(host)
        async with entry.slots:
            async with entry.turn:
                # the loop looks again because a Retry-After may have come in meanwhile
                while (wait := max(entry.next_at, entry.not_before) - time.monotonic()) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(wait)
                entry.next_at = time.monotonic() + entry.delay_s
            async with self._total:
                yield

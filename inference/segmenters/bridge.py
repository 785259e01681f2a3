"""Calling async clients from a segmenter's thread.

A core `Segmenter` is synchronous and runs in a worker thread; chat models are async and belong to the run's event loop.
The runner notes its loop in a context variable, which `asyncio.to_thread` carries along; outside of a run a loop of its
own is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("loop of the run", default=None)


def note_loop() -> None:
    """Remember the running loop for threads that are started from here."""
    _loop.set(asyncio.get_running_loop())


def wait_for(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines, run together on the run's loop. Not for use on that loop's own thread."""

    async def together() -> list[T]:
        return list(await asyncio.gather(*coroutines))

    loop = _loop.get()
    if loop is None or loop.is_closed():
        return asyncio.run(together())
    return asyncio.run_coroutine_threadsafe(together(), loop).result()

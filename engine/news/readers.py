"""Who reads pages and pictures: threads of this process, or processes beside it that use more than one core.

The readers get bytes and give values; fetching, storing and deciding stay in the process that asks. What comes back
does not depend on who read it. The processes end with the one that started them, in whatever way it ends.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from engine.core.errors import TerminalError

P = ParamSpec("P")
T = TypeVar("T")
#: Threads that read at a time where there are no processes: more would only hold up the network's loop.
THREADS = 2


class ReaderDied(Exception):
    """Reading something ended the process that did it, alone and twice."""


class Readers:
    """Calls functions on a bounded number of threads (`processes` 1) or processes (more). Those of processes must be
    functions of a module, their arguments and results small enough to be sent."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        # one more than there are processes: the next piece lies ready when one is done
        self._places = asyncio.Semaphore(processes + 1 if processes > 1 else THREADS)
        self._alone = asyncio.Lock()
        self._pool: ProcessPoolExecutor | None = None

    async def call(self, work: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> T:
        """What `work` gives; its exceptions are raised here. Raises `ReaderDied` for what no process survives."""
        async with self._places:
            if self._processes < 2:
                return await asyncio.to_thread(work, *args, **more)
            pool = self._pool = self._pool or _pool(self._processes)
            job = partial(work, *args, **more)
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, job)
            except BrokenProcessPool:
                # one of the pieces that were being read ended its process, and the pool with it
                if self._pool is pool:
                    self._pool = None
                    pool.shutdown(wait=False)
            return await self._once_more(job)

    async def _once_more(self, job: Callable[[], T]) -> T:
        async with self._alone:
            pool = _pool(1)
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, job)
            except BrokenProcessPool as error:
                raise ReaderDied("reading it ended the process that read it") from error
            finally:
                pool.shutdown(wait=False)

    def close(self) -> None:
        """End the processes; what they were asked and have not begun is forgotten."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


@asynccontextmanager
async def readers(processes: int) -> AsyncIterator[Readers]:
    """Readers that are gone when the block ends."""
    found = Readers(processes)
    try:
        yield found
    finally:
        await asyncio.to_thread(found.close)


def _pool(processes: int) -> ProcessPoolExecutor:
    try:
        # started anew: a fork would copy locks that other threads hold
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(processes, mp_context=context, initializer=_begin)
    except (OSError, ValueError, NotImplementedError) as error:
        raise TerminalError(f"no processes can be started here ({error}): set [collect] processes = 1") from error


def _begin() -> None:
    """In a new process: Ctrl-C is its parent's to handle, and it ends when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

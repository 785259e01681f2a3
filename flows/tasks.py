"""The one place where prefect's tasks are made: no cache, no stored results, small references only.

Prefect decides when and where; the store decides what is done. A task may be run twice without harm.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

from engine.core.errors import BusyError
from flows import console, log

R = TypeVar("R")
BUSY_EVERY_S = 2.0


def step(name: str, function: Callable[..., R], *args: Any, retries: int = 0) -> R:
    """Run a function as a Prefect task of that name in the running flow and return its value."""
    return as_task(name, function, *args, retries=retries)()


def patiently(function: Callable[..., R], *args: Any, wait_s: float) -> R:
    """Call a function that may find its lock taken; wait and try again for so long."""
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        try:
            return function(*args)
        except BusyError as error:
            if time.monotonic() >= deadline:
                raise
            if not told:
                console.say(f"  {error}")
                told = True
            time.sleep(BUSY_EVERY_S)


def as_task(name: str, function: Callable[..., R], *args: Any, retries: int = 0) -> Task[[], R]:
    """A call as a Prefect task without parameters, since Prefect would walk through every one of them; the first word
    of `name` is the task's, all of it the run's."""

    def call() -> R:
        started = time.monotonic()
        with log.about(stage=name.split(" ")[0], task=name):
            result = function(*args)
        # shown in Prefect's pages where a real server keeps logs; runners of another kind may call without a run
        with contextlib.suppress(MissingContextError):
            get_run_logger().info("%s ended after %.1f s %s", name, time.monotonic() - started, log.ids() or "")
        return result

    made: Task[[], R] = task(
        name=name.split(" ")[0], task_run_name=name, cache_policy=NO_CACHE, persist_result=False, retries=retries
    )(call)
    return made

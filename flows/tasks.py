"""The one place where prefect's tasks are made: no cache, no stored results, small references only.

Prefect decides when and where; the store decides what is done. A task may be run twice without harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE

R = TypeVar("R")


def step(name: str, function: Callable[..., R], *args: Any, retries: int = 0) -> R:
    """Run a function as a Prefect task of that name in the running flow and return its value."""
    wrap = task(
        name=name.split(" ")[0], task_run_name=name, cache_policy=NO_CACHE, persist_result=False, retries=retries
    )
    result: R = wrap(function)(*args)
    return result

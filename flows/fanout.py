"""A stage's shards fanned out over an engine that is there already: Dask, Ray, or any other Prefect task runner.

`[flows] task_runner` names the class; it is started for the length of one stage. A task gets the run (plain values)
and the numbers of all missing shards, each task beginning elsewhere: locks keep two from doing one, so a fast worker
does more, and what a lost worker leaves the others find. What is made lies in the store, only counts travel back.
The engine's machines need the same code, the same home on a shared file system, and keys in their own environment.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from engine.core.errors import ConfigError, NestError, TransientError
from flows import console
from flows.run import Run
from flows.tasks import as_task

#: Classes that ship as an extra of this distribution.
EXTRAS = {"prefect_dask": "dask"}
#: Where engines define their own words for a lost worker; errors of our work come from elsewhere.
ENGINES = ("distributed", "dask", "ray")


class Runner(Protocol):
    """What is used of a Prefect task runner."""

    def __enter__(self) -> Runner: ...

    def __exit__(self, *args: object) -> None: ...

    def submit(self, task: Any, parameters: dict[str, Any]) -> Any: ...


def make_runner(run: Run) -> Runner:
    """The task runner that the configuration names. Raises `ConfigError` where it cannot be had."""
    told = run.config.flows.task_runner
    options = dict(run.config.flows.task_runner_options)
    module, colon, name = told.partition(":")
    # what matters of its story is told here: a lost worker, in a sentence
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if not module or not colon or not name:
        raise ConfigError(f"[flows] task_runner '{told}' is not module:Class, e.g. prefect_dask:DaskTaskRunner")
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        extra = EXTRAS.get(module)
        mend = f"pip install 'nest-data-engine[{extra}]'" if extra else f"install the package of '{module}'"
        raise ConfigError(f"[flows] task_runner '{told}' cannot be loaded ({error}): {mend}") from error
    if name == "DaskTaskRunner" and not options:
        # one process per task and nothing bound beyond loopback; an address or options of one's own replace this
        count = run.config.flows.task_runner_tasks
        options["cluster_kwargs"] = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    try:
        return cast(Runner, made(**options))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"[flows] task_runner_options do not suit '{told}': {error}") from error


def fan_out(run: Run, name: str, function: Callable[..., int], *args: Any, shards: Sequence[int]) -> int:
    """Call `function(run, *args, shards)` in a few tasks on the task runner; returns the sum of what they counted.

    An error of the work itself is raised as itself once all tasks have ended; workers that are lost for good are a
    `TransientError`.
    """
    if not shards:
        return 0
    count = min(run.config.flows.task_runner_tasks, len(shards))
    futures = []
    total = 0
    failures: list[NestError] = []
    with make_runner(run) as runner:
        for number in range(count):
            start = number * len(shards) // count
            order = [*shards[start:], *shards[:start]]
            task = as_task(f"{name} {run.window.label} part {number}", function, run, *args, order)
            futures.append(runner.submit(task, {}))
        for future in futures:
            try:
                total += future.result()
            except NestError as error:
                failures.append(error)
            except Exception as error:
                if type(error).__module__.partition(".")[0] not in ENGINES:
                    raise
                console.say(f"  a task of {name} was lost ({type(error).__name__}: {error})")
                failures.append(TransientError(f"workers of {run.config.flows.task_runner} were lost: run again"))
    if failures:
        raise failures[0]
    return total

"""Calling a flow inside a command: its exception comes out as itself, without prefect's tracebacks on stderr."""

from __future__ import annotations

import logging
from typing import Any


def call(flow: Any, **parameters: Any) -> Any:
    """Run a Prefect flow here and return its value, or raise what it raised.

    Prefect logs every failure with a traceback, and again at exit when its event queue finds the server gone; the
    command says the one sentence that matters, so these loggers are silenced unless the user set their level.
    """
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.events", "prefect._internal"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    state = flow(**parameters, return_state=True)
    result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    return result

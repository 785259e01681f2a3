"""Calling a flow inside a command: its exception comes out as itself, without prefect's tracebacks on stderr; and what
a server that does not answer means to a user."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from engine.core.errors import ConfigError, TransientError, first_line

R = TypeVar("R")


def call(flow: Any, **parameters: Any) -> Any:
    """Run a Prefect flow here and return its value, or raise what it raised.

    Prefect logs every failure with a traceback, and again at exit when its event queue finds the server gone; the
    command says the one sentence that matters, so these loggers are silenced unless the user set their level.
    """
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.events", "prefect._internal"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with asking_the_server():
        state = flow(**parameters, return_state=True)
        result = state.result(raise_on_failure=False)
        if isinstance(result, BaseException):
            raise result
    return result


def insist(ask: Callable[[], R], *, patience_s: float = 300.0) -> R:
    """Ask the server something that may be asked twice; one that is busy (a locked database, a restart) is asked again
    for a while, with waits of its own beyond those of Prefect's client."""
    import httpx
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

    deadline, wait = time.monotonic() + patience_s, 1.0
    while True:
        try:
            return ask()
        except ObjectNotFound:
            raise
        except (httpx.TransportError, PrefectHTTPStatusError) as error:
            status = error.response.status_code if isinstance(error, PrefectHTTPStatusError) else 503
            if (status < 500 and status != 429) or time.monotonic() + wait > deadline:
                raise
            time.sleep(wait)
            wait = min(15.0, 2 * wait)


@contextmanager
def asking_the_server() -> Iterator[None]:
    """A server that is away is a `TransientError`, a deployment that it does not have a `ConfigError`."""
    import httpx
    from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

    try:
        yield
    except ObjectNotFound as error:
        raise ConfigError(
            "the Prefect server does not have what was asked for: 'prefect deployment ls' lists its deployments, "
            f"'prefect --no-prompt deploy --all' makes them ({first_line(error)})"
        ) from error
    except (httpx.TransportError, PrefectHTTPStatusError) as error:
        raise TransientError(
            f"the Prefect server at {os.environ.get('PREFECT_API_URL', '')} did not answer ({first_line(error)}): see "
            "that it runs and has this version, then run the same command again; what was finished is kept"
        ) from error

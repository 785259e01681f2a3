"""Telling the outside world: a ping per finished stage, and a summary at the end of a run.

Server, worker and webhook may die together, so the ping goes to an address elsewhere that raises the alarm when it
stays away. Neither ever fails a run: what could not be told is one line on stderr.
"""

from __future__ import annotations

from typing import Any

from flows import console
from flows.run import Run

TIMEOUT_S = 10.0


def ping(run: Run, stage: str) -> None:
    """Fetch `[flows] heartbeat_url` with the stage's name as query."""
    url = run.config.flows.heartbeat_url
    if url:
        _send("GET", url, params={"stage": stage, "window": run.window.label})


def tell(run: Run, summary: dict[str, Any]) -> None:
    """Post the run's summary as JSON to `[flows] webhook`."""
    url = run.config.flows.webhook
    if url:
        _send("POST", url, json=summary)


def _send(method: str, url: str, **content: Any) -> None:
    import httpx

    try:
        httpx.request(method, url, timeout=TIMEOUT_S, **content).raise_for_status()
    except httpx.HTTPStatusError as error:
        # the address may hold a token, so only its host is named
        console.say(f"  {error.request.url.host} answered {error.response.status_code} to the notification")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        console.say(f"  the notification could not be sent ({type(error).__name__})")

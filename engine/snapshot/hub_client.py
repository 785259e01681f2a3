"""Talking to the Hub: which failures pass, how long to wait, and which sentence a user gets.

The Hub library retries uploads of large files by itself, but no commit and no look-up. What to do after an answer
is decided by one function from status, headers and text, so that it can be tested without a network.

Xet, the Hub's storage for large files, exists only at huggingface.co. Any other endpoint (a mirror, a private Hub,
the tests' loopback Hub) takes large files by LFS; so Xet is switched off while we talk to one, whatever
`HF_HUB_DISABLE_XET` says. The switch is the library's own constant, which it reads at each call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from engine.core.errors import ConfigError, NestError, TerminalError, TransientError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")
#: Tries of one action, and the longest wait in seconds that is sat out within a run.
TRIES = 5
PATIENCE_S = 120.0


class Then(StrEnum):
    """What to do after a failed request."""

    REBUILD = "rebuild"  # the head moved: read it, build the commit anew
    WAIT = "wait"  # the same request again after a pause
    LOOK = "look"  # it may have gone through: look at the head first
    LATER = "later"  # stop, keep what is built, run again later
    STOP = "stop"  # trying again would not help


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, after how many seconds, and why in words."""

    then: Then
    wait_s: float
    why: str


def decide(status: int, headers: Mapping[str, str], message: str, *, tried: int = 0) -> Decision:
    """What a failed answer means. `tried` is the number of tries so far; pauses double with it."""
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    pause = min(30.0, 1.0 * 2**tried)
    told = message.strip() or f"status {status}"
    if status == 412:
        return Decision(Then.REBUILD, min(2.0, 0.2 * 2**tried), f"someone else committed meanwhile ({told})")
    if status == 409:
        return Decision(Then.WAIT, pause, f"another commit is in progress ({told})")
    if status == 429:
        limits = parse_ratelimit_headers(headers)
        after = _seconds(headers.get("retry-after", ""))
        wait = float(limits.reset_in_seconds) if limits and limits.remaining == 0 else after
        if "quota" in message.lower() or (wait is not None and wait > PATIENCE_S):
            return Decision(Then.LATER, wait or 0.0, f"the Hub's quota is used up ({told})")
        return Decision(Then.WAIT, (wait + 1) if wait is not None else pause, f"the Hub asks to slow down ({told})")
    if status == 401:
        return Decision(Then.STOP, 0, f"the Hub does not know the token in HF_TOKEN ({told})")
    if status == 403:
        return Decision(Then.STOP, 0, f"the token in HF_TOKEN has no right to write there ({told})")
    if status == 404:
        return Decision(Then.STOP, 0, f"no such repository, or no right to see it ({told})")
    if status >= 500 or status == 408:
        return Decision(Then.LOOK, pause, f"the Hub failed ({told})")
    return Decision(Then.STOP, 0, f"the Hub refused ({told})")


def _seconds(text: str) -> float | None:
    return float(text) if text.isdigit() else None


def decision_of(error: BaseException, *, tried: int = 0) -> Decision | None:
    """The decision for an exception of the Hub library, None for one that is not about the Hub."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    link: BaseException | None = error
    while link is not None:
        if isinstance(link, HfHubHTTPError) and link.response is not None:
            text = link.server_message or str(link)
            return decide(link.response.status_code, link.response.headers, text, tried=tried)
        if isinstance(link, (httpx2.TransportError, ConnectionError)):
            return Decision(Then.LOOK, min(30.0, 1.0 * 2**tried), f"the connection was lost ({link})")
        link = link.__cause__ or link.__context__
    return None


def failure(what: str, decision: Decision) -> NestError:
    """The sentence for the user when an action is given up."""
    if decision.then is Then.STOP:
        kind = ConfigError if "HF_TOKEN" in decision.why else TerminalError
        return kind(f"{what} failed: {decision.why}")
    later = f"; it may be tried again in {decision.wait_s / 60:.0f} minutes" if decision.wait_s > PATIENCE_S else ""
    return TransientError(
        f"{what} failed: {decision.why}{later}: run the same command again later, nothing here is lost"
    )


def patiently(
    what: str, action: Callable[[], T], *, sleep: Callable[[float], None] = time.sleep, tries: int = TRIES
) -> T:
    """Run a request that may safely be repeated, with bounded tries. Raises a `NestError` when it is given up."""
    for tried in range(tries):
        try:
            return action()
        except Exception as error:
            decision = decision_of(error, tried=tried)
            if decision is None:
                raise
            if decision.then in (Then.STOP, Then.LATER) or tried == tries - 1:
                raise failure(what, decision) from error
            sleep(decision.wait_s)
    raise AssertionError("tries is at least 1")


class _Switches:
    """The library's global switches while at least one of our clients is open, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before: tuple[bool, bool] = (False, False)

    def enter(self, *, xet: bool) -> None:
        from huggingface_hub import constants
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            are_progress_bars_disabled,
            disable_progress_bars,
        )

        with self._lock:
            if not self._open:
                self._before = (constants.HF_HUB_DISABLE_XET, are_progress_bars_disabled())
                disable_progress_bars()
            self._open += 1
            if not xet:
                constants.HF_HUB_DISABLE_XET = True

    def leave(self) -> None:
        from huggingface_hub import constants
        from huggingface_hub.utils import enable_progress_bars  # type: ignore[attr-defined]

        with self._lock:
            self._open -= 1
            if not self._open:
                constants.HF_HUB_DISABLE_XET, hidden = self._before
                if not hidden:
                    enable_progress_bars()


_switches = _Switches()


@contextlib.contextmanager
def hub(token: str | None, endpoint: str | None) -> Iterator[HfApi]:
    """A client for one endpoint, without progress bars, with Xet only where it exists.

    Without an endpoint it is the library's own: `HF_ENDPOINT`, or huggingface.co.
    """
    from huggingface_hub import HfApi, constants

    where = (endpoint or constants.ENDPOINT).rstrip("/")
    if urlsplit(where).scheme not in ("http", "https") or not urlsplit(where).hostname:
        raise ConfigError(f"'{where}' is not the address of a Hub: set HF_ENDPOINT to https://... or leave it unset")
    _switches.enter(xet=_has_xet(where))
    try:
        yield HfApi(endpoint=where, token=token or False, library_name="nest-data-engine")
    finally:
        _switches.leave()


def _has_xet(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host == "hf.co" or host == "huggingface.co" or host.endswith(".huggingface.co")


def download(api: HfApi, repo: str, path: str, revision: str, folder: Path) -> bytes | None:
    """A file of a dataset repository at a revision, None if it is not there. Nothing is taken from a cache."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        found = hf_hub_download(
            repo,
            path,
            repo_type="dataset",
            revision=revision,
            cache_dir=folder,
            endpoint=api.endpoint,
            token=api.token,
        )
    except EntryNotFoundError:
        return None
    return Path(found).read_bytes()

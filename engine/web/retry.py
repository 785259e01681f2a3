"""When to try again and how long to wait; the waiting itself is `client`'s.

Back-off doubles from half a second and is spread by the URL, not by chance, so that two runs wait alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from engine.core.schema import Code
from engine.web.errors import FetchError

FIRST_WAIT_S = 0.5
MAX_BACKOFF_S = 30.0
#: Statuses that may pass by themselves (RFC 9110, RFC 6585; 520 to 524 are a proxy's words for the same).
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})


class Retry(Exception):
    """A failure that may pass. `tries` caps the further tries, `after_s` is what the server asked to wait, `plain`
    asks for an unpacked body next time."""

    def __init__(
        self, error: FetchError, *, tries: int | None = None, after_s: float | None = None, plain: bool = False
    ) -> None:
        super().__init__(error.detail)
        self.error = error
        self.tries = tries
        self.after_s = after_s
        self.plain = plain


def backoff_s(url: str, attempt: int) -> float:
    """Seconds before further try number `attempt` (from 0): doubling, times 0.75 to 1.25 by the URL."""
    spread = 0.75 + hashlib.sha256(f"{attempt} {url}".encode()).digest()[0] / 510
    return min(FIRST_WAIT_S * float(2**attempt), MAX_BACKOFF_S) * spread


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for (a number or an HTTP date), None if absent or senseless."""
    raw = headers.get("retry-after", "").strip()
    if not raw:
        return None
    try:
        return max(0.0, float(int(raw)))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(raw)
    except (ValueError, TypeError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


def status_failure(status: int, headers: Mapping[str, str], now: datetime) -> FetchError | Retry:
    """What an HTTP status outside 200 to 299 means."""
    told = f"HTTP {status}"
    if status in PASSING:
        code = Code.FETCH_RATE_LIMITED if status == 429 else Code.FETCH_SERVER_ERROR
        return Retry(FetchError(code, told), after_s=retry_after_s(headers, now))
    if status in (401, 402, 403, 407, 451):
        return FetchError(Code.FETCH_FORBIDDEN, told)
    if status in (404, 410):
        return FetchError(Code.FETCH_GONE, told)
    if status >= 500:
        return FetchError(Code.FETCH_SERVER_ERROR, told)
    return FetchError(Code.FETCH_FAILED, told)

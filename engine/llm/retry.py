"""What to do after a failed answer of a model endpoint: a pure function of status, headers and body.

The SDK's own retries stay off. It gives up above 120 s, reads no `x-ratelimit-reset-*`, takes a date in Retry-After
by the local clock, and treats an empty account like a busy server. Sleeping is the client's business, not ours.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

Action = Literal["retry", "wait_own", "stop", "stop_item", "shorten", "adapt"]
#: The SDK does not sleep longer than this; waits above it are ours alone.
SDK_LONGEST_S = 120.0
#: Bounds of our own exponential wait.
BACKOFF_MIN_S, BACKOFF_MAX_S = 0.3, 60.0
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"})
_TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|context window|too many tokens", re.I)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PARAMETERS = re.compile(
    r"response_format|json_schema|json_object|max_completion_tokens|max_tokens|temperature|\bseed\b|structured", re.I
)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do. `seconds` None means our own backoff; `why` is one of quota, key, model, redirect, limit, server,
    request."""

    action: Action
    seconds: float | None = None
    why: str = ""
    message: str = ""


def advise(status: int, headers: Mapping[str, str], body: bytes | str, *, now: datetime) -> Advice:
    """Decide after an answer with `status` of 300 or more. `headers` have lower-case names, `now` is aware UTC."""
    if 300 <= status < 400:
        return Advice("stop", why="redirect", message=_host(headers.get("location", "")))
    error = _error(body)
    code = str(error.get("code") or error.get("type") or "")
    codes = {str(error.get("code")), str(error.get("type"))}
    message = _plain(error, body)
    if codes & _QUOTA:
        return Advice("stop", why="quota", message=message)
    if status in (401, 403):
        return Advice("stop", why="key", message=message)
    if status == 404:
        return Advice("stop", why="model", message=message)
    if status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(f"{code} {message}")):
        return Advice("shorten", why="request", message=message)
    # llama.cpp's server answers 500 to a response_format that it does not know
    if status in (400, 422, 500, 501) and _PARAMETERS.search(message):
        return Advice("adapt", why="request", message=message)
    told = headers.get("x-should-retry", "").lower()
    if told == "false":
        return Advice("stop_item", why="server", message=message)
    if told != "true" and status not in (408, 409, 425, 429) and status < 500:
        return Advice("stop_item", why="request", message=message)
    why = "limit" if status == 429 else "server"
    seconds, own = wait_of(headers, now=now)
    return Advice("wait_own" if own else "retry", seconds, why, message)


def wait_of(headers: Mapping[str, str], *, now: datetime) -> tuple[float | None, bool]:
    """Seconds that the headers ask for, and whether the SDK would not have waited so; (None, False) if they say
    nothing usable (zero, negative, infinite)."""
    for value, unit in ((headers.get("retry-after-ms"), 0.001), (headers.get("retry-after"), 1.0)):
        seconds = _after(value, headers, unit, now)
        if seconds is not None:
            return seconds, seconds > SDK_LONGEST_S
    resets = [
        seconds
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0"
        and (seconds := duration_s(headers.get(f"x-ratelimit-reset-{kind}", ""))) is not None
    ]
    return (max(resets), True) if resets else (None, False)


def duration_s(text: str) -> float | None:
    """Seconds of `6ms`, `8.64s`, `1m12.5s`, `6m0s`, `1h2m3s`; None for anything else or zero."""
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    total = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    return total if total > 0 else None


def backoff_s(attempt: int, *, first_s: float, jitter: float) -> float:
    """Exponential wait before try `attempt` (from 0); `jitter` in [0, 1) spreads it over its upper half."""
    full = min(BACKOFF_MAX_S, first_s * 2.0 ** min(attempt, 16))
    return max(BACKOFF_MIN_S, full * (0.5 + jitter / 2))


def _after(value: str | None, headers: Mapping[str, str], unit: float, now: datetime) -> float | None:
    if not value:
        return None
    try:
        seconds = float(value) * unit
    except ValueError:
        when = _http_date(value)
        # against the answer's own clock: ours may be wrong
        base = _http_date(headers.get("date", "")) or now
        if when is None:
            return None
        seconds = (when - base) / timedelta(seconds=1)
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _http_date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None


def _host(location: str) -> str:
    try:
        return urlsplit(location).netloc.rpartition("@")[2] or location.partition("?")[0][:200] or "nowhere"
    except ValueError:
        return "an address that is none"


def _error(body: bytes | str) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    inner = found.get("error", found) if isinstance(found, dict) else {}
    return inner if isinstance(inner, dict) else {"message": str(inner)}


def _plain(error: Mapping[str, Any], body: bytes | str) -> str:
    text = error.get("message") or error.get("detail") or error.get("code") or ""
    if not text:
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    return " ".join(str(text).split())[:300]

"""Whether a server answers at its address, and whether its clock is ours."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from flows.doctor.finding import Finding

CLOCK_SKEW_S = 120.0


def endpoint(base: str, *, name: str, mend: str) -> Iterator[Finding]:
    """One finding that it answers, or that it does not; a second one where the clocks differ."""
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Finding("bad", f"{name} '{base}' is not an address", mend)
        return
    request = urllib.request.Request(base, method="GET")
    date = None
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            date = answer.headers.get("date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("date")  # any answer shows that it can be reached
    except (urllib.error.URLError, OSError, ValueError) as error:
        yield Finding("bad", f"{name} {parts.hostname} does not answer ({getattr(error, 'reason', error)})", mend)
        return
    yield Finding("good", f"{name} {parts.hostname} answers")
    if date:
        try:
            skew = abs((datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds())
        except (TypeError, ValueError):
            return
        if skew > CLOCK_SKEW_S:
            yield Finding(
                "warn", f"the clock differs from that server's by {skew:.0f} s", "set the clock: windows depend on it"
            )

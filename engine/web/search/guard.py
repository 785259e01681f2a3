"""What retrieval may know: dates before the cut-off, and no blocked page in any of its spellings.

Shared by all providers, so that one rule decides. Nothing here fetches or parses pages.

Rules (half-open, aware UTC):
- a document without a date never passes a cut-off;
- a date without a time counts until the end of its day, because it could be any moment of it;
- a document whose text was changed later counts from the change, since the old text is not at hand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from engine.web.urls import url_key

#: Share of common five-word runs from which two texts are one (our choice: an agency text with another headline
#: keeps nearly all of them, two reports of one event share a few quotations).
NEAR_COPY = 0.6
_DAY = timedelta(days=1)
_RUN_WORDS = 5


def last_instant(
    published: datetime | None,
    *,
    precision: Literal["second", "day"] = "second",
    modified: Iterable[datetime] = (),
) -> datetime | None:
    """The latest instant a text may come from, aware UTC; None without a date. Raises ValueError for naive dates."""
    if published is None:
        return None
    instants = [published, *modified]
    if any(instant.tzinfo is None for instant in instants):
        raise ValueError("a date without a zone cannot be compared with a cut-off")
    if precision == "day":
        instants[0] = published + _DAY - timedelta(microseconds=1)
    return max(instant.astimezone(UTC) for instant in instants)


def read_instant(text: str | None) -> datetime | None:
    """The latest instant an ISO 8601 date or time may mean, aware UTC; None if it is none or has a time but no zone.

    A time without a zone is refused instead of guessed: it could lie on either side of a cut-off.
    """
    if not text:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
            return last_instant(datetime.fromisoformat(text.strip()).replace(tzinfo=UTC), precision="day")
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return instant.astimezone(UTC) if instant.tzinfo is not None else None


def in_time(instant: datetime | None, until: datetime | None) -> bool:
    """Whether a document of that last instant may be known at the cut-off `until` (None: no cut-off)."""
    if until is None:
        return True
    if until.tzinfo is None:
        raise ValueError("a cut-off needs a zone")
    return instant is not None and instant < until


class Blocked:
    """The pages retrieval must not read.

    `urls` block a page in all its spellings; `sites` block everything below a host or a host with a path
    ("huggingface.co/datasets"), for the places where the dataset itself lies.
    """

    def __init__(self, urls: Sequence[str] = (), *, sites: Sequence[str] = ()) -> None:
        self.keys = frozenset(url_key(url) for url in urls if url)
        self.sites = tuple(url_key(f"https://{site.split('://')[-1]}").rstrip("/") for site in sites if site)

    def __contains__(self, url: object) -> bool:
        if not isinstance(url, str) or not url:
            return False
        key = url_key(url)
        if key in self.keys:
            return True
        path = key.split("?", 1)[0].rstrip("/")
        return any(
            path == site or path.startswith(f"{site}/") or path.split("/", 1)[0].endswith(f".{site}")
            for site in self.sites
        )


def shingles(text: str) -> frozenset[str]:
    """The text's runs of five words, case and accents folded; a shorter text is one run."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    words = re.findall(r"[^\W_]+", "".join(c for c in folded if not unicodedata.combining(c)))
    if len(words) <= _RUN_WORDS:
        return frozenset({" ".join(words)}) if words else frozenset()
    return frozenset(" ".join(words[i : i + _RUN_WORDS]) for i in range(len(words) - _RUN_WORDS + 1))


def near_copy(a: frozenset[str], b: frozenset[str], *, share: float = NEAR_COPY) -> bool:
    """Whether the smaller of two sets of shingles lies for the most part in the larger one."""
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return bool(small) and len(small & large) >= share * len(small)

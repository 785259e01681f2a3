"""The Protocol of a source type, and what its implementations share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from engine.core.config import CollectSection, SourceSection
from engine.core.protocols import Fetcher
from engine.core.schema import Code, DateWitness, Link, Rejected, Stage, Window
from engine.news.deps import NewsDeps
from engine.web.errors import FetchError

#: Days beyond the window that a link's own date may lie without the link being dropped unread: the page decides, and
#: zones and aggregators' delays shift dates by a day.
MARGIN = timedelta(days=1)
#: A date later than this after the window's end is a fault and no publication date.
LATEST = timedelta(days=366)


class SourceError(Exception):
    """A source could not be read as a whole; other sources go on."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Source(Protocol):
    """A type of source. Raises `SourceError` where nothing can be read; single bad items are `Rejected`."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]: ...


def latest_of(window: Window) -> datetime:
    """First instant that cannot be the publication date of anything this window is about."""
    return window.end + LATEST


async def get(fetcher: Fetcher, url: str, *, api: bool = False) -> tuple[bytes, dict[str, str], str]:
    """Body, headers and final URL of a feed, sitemap or API answer. Raises `SourceError`."""
    if not url:
        raise SourceError(Code.SOURCE_UNREACHABLE, "the source has no url")
    try:
        fetched = await fetcher.fetch(url, kind="api" if api else "feed")
    except FetchError as error:
        raise SourceError(source_code(error.code), f"{error.code.value}: {error.detail}") from error
    return fetched.body, dict(fetched.headers), fetched.url


def source_code(code: Code) -> Code:
    """What a fetch failure means for a source as a whole."""
    if code is Code.FETCH_RATE_LIMITED:
        return Code.SOURCE_RATE_LIMITED
    if code in (Code.ROBOTS_DISALLOWED, Code.AI_OPT_OUT):
        return code
    return Code.SOURCE_UNREACHABLE


def outside(witnesses: Sequence[DateWitness], window: Window) -> str:
    """Why a link is dropped before its page is read: its own credible date is clearly not the window's.

    A modified date before the window also settles it, since nothing is modified before it is published.
    """
    for w in witnesses:
        if not w.credible:
            continue
        if w.role == "published" and not window.start - MARGIN <= w.value < window.end + MARGIN:
            return f"{w.kind} says {w.value:%Y-%m-%d}"
        if w.role == "modified" and w.value < window.start - MARGIN:
            return f"{w.kind} says last changed on {w.value:%Y-%m-%d}"
    return ""


def drop(url: str, row: SourceSection, code: Code, detail: str) -> Rejected:
    return Rejected(item=url, stage=Stage.COLLECT, code=code, detail=detail, source=row.name)

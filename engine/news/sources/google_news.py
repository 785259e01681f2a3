"""`type = "google_news"`: time-specific queries to Google News' RSS search.

The dates in a query are a hint that the service does not keep to, and its pubDates may be fresh for old stories: an
item's date is no credible witness, the page decides. Links of the old form hold the publisher's address and are
decoded; the opaque new form is reported as unresolved unless `options.resolve = "googlenewsdecoder"` names the
maintained library that asks Google for it (the extra `news`; its own connections, one link at a time).

Options: `query` (text or list), `language` and `region` (default from the source's language, else en and US), `topic`
(a topic token instead of a query), `every_days` (length of one query's range, default 1), `resolve`.
The feed is licensed for personal readers: publishers' own feeds and sitemaps come first.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from datetime import date, datetime, timedelta
from urllib.parse import urlencode, urlsplit

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError
from engine.core.schema import Code, Link, Rejected, Window
from engine.news.deps import NewsDeps
from engine.news.feedread import FeedEntry, read_feed
from engine.news.sources.base import MARGIN, SourceError, drop, get, latest_of
from engine.news.terms import terms_of

BASE = "https://news.google.com/rss"
_OPAQUE = "AU_yq"


class GoogleNewsSource:
    """Links found by search terms; the term stands in the link."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]:
        found: list[Link | Rejected] = []
        failures: list[SourceError] = []
        asked = 0
        for term in await terms_of(row, window, deps=deps):
            for url in query_urls(row, window, term):
                asked += 1
                try:
                    found += await self._one(url, term, window, row, deps)
                except SourceError as error:
                    failures.append(error)
                    found.append(drop(url, row, error.code, error.detail))
        if asked and len(failures) == asked:
            raise failures[0]
        return found

    async def _one(
        self, url: str, term: str | None, window: Window, row: SourceSection, deps: NewsDeps
    ) -> list[Link | Rejected]:
        body, headers, final = await get(deps.fetcher, url)
        feed = read_feed(body, final, headers=headers, latest=latest_of(window))
        if feed.problem:
            raise SourceError(Code.SOURCE_NOT_A_FEED, feed.problem)
        found = []
        for entry in feed.entries:
            place = publisher_url(entry.url)
            if place is None and row.options.get("resolve") and not _far(entry, window):
                # the library waits for the network
                place = await asyncio.to_thread(resolve_online, entry.url, row)
            found.append(self._link(entry, place, term, window, row))
        return found

    def _link(
        self, entry: FeedEntry, place: str | None, term: str | None, window: Window, row: SourceSection
    ) -> Link | Rejected:
        title = without_tail(entry.title, entry.publisher)
        if far := _far(entry, window):
            return drop(place or entry.url, row, Code.OUTSIDE_WINDOW, f"the feed says {far:%Y-%m-%d}")
        if place is None:
            return drop(entry.url, row, Code.LINK_UNRESOLVED, f"opaque link to '{title}' of {entry.publisher or '?'}")
        witnesses = tuple(
            w.model_copy(update={"credible": False, "note": "an aggregator's date"}) for w in entry.witnesses
        )
        return Link(
            url=place,
            source=row.name,
            source_type="google_news",
            publisher=entry.publisher or row.publisher,
            title=title,
            section=row.section,
            term=term,
            witnesses=witnesses,
        )


def _far(entry: FeedEntry, window: Window) -> datetime | None:
    """A date far from the window is the service not keeping to the range; a near one proves nothing."""
    return next(
        (
            w.value
            for w in entry.witnesses
            if w.role == "published" and not window.start - MARGIN <= w.value < window.end + MARGIN
        ),
        None,
    )


def query_urls(row: SourceSection, window: Window, term: str | None) -> list[str]:
    """Addresses of the queries for a window: one per `every_days` days, since long ranges answer only their newest
    part."""
    every = row.options.get("every_days", 1)
    if not isinstance(every, int) or every < 1:
        raise ConfigError(f"source '{row.name}': options.every_days is a number of at least 1")
    language = str(row.options.get("language") or row.language or "en")
    region = str(row.options.get("region") or (language.split("-")[1] if "-" in language else "US"))
    base = row.url.rstrip("/") or BASE
    place = {"hl": language, "gl": region, "ceid": f"{region}:{language.split('-')[0]}"}
    if topic := row.options.get("topic"):
        return [f"{base}/topics/{topic}?{urlencode(place)}"]
    if term is None:
        raise ConfigError(f"source '{row.name}': google_news needs options.query, options.terms or options.topic")
    urls = []
    day: date = window.first
    while day <= window.last:
        end = min(day + timedelta(days=every), window.last + timedelta(days=1))
        urls.append(f"{base}/search?{urlencode({'q': f'{term} after:{day} before:{end}', **place})}")
        day = end
    return urls


def publisher_url(link: str) -> str | None:
    """The publisher's address in an old-style Google News link; the link itself if it is no Google link; None for the
    opaque form.

    The path's last part is URL-safe base64 of a small protobuf: 08 13 22, the length as a varint, the address.
    """
    parts = urlsplit(link)
    if not (parts.hostname or "").endswith("news.google.com"):
        return link
    match = re.search(r"/(?:articles|read)/([A-Za-z0-9_\-]+)", parts.path)
    if match is None:
        return None
    token = match[1]
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        return None
    start = raw.find(b"\x22")
    if not raw.startswith(b"\x08") or start < 0:
        return None
    length, shift, at = 0, 0, start + 1
    while at < len(raw):
        byte = raw[at]
        length |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if not byte & 0x80:
            break
    found = raw[at : at + length]
    if len(found) != length or found.startswith(_OPAQUE.encode()):
        return None
    try:
        text = found.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.startswith(("http://", "https://")) else None


def without_tail(title: str, publisher: str) -> str:
    """The title without " - Publisher", which is cut only where it is the item's own source."""
    tail = f" - {publisher}"
    return title[: -len(tail)].rstrip() if publisher and title.endswith(tail) else title


def resolve_online(link: str, row: SourceSection) -> str | None:
    """Ask the library named in `options.resolve`, if any. Raises `ConfigError` if it is not installed."""
    name = row.options.get("resolve")
    if not name:
        return None
    if name != "googlenewsdecoder":
        raise ConfigError(f"source '{row.name}': options.resolve knows 'googlenewsdecoder' only, not '{name}'")
    try:
        from googlenewsdecoder import gnewsdecoder
    except ImportError as error:
        raise ConfigError(
            f"source '{row.name}': options.resolve needs the package googlenewsdecoder: pip install "
            "'nest-data-engine[news]', or leave resolve out (opaque links are then counted as link_unresolved)"
        ) from error
    try:
        answer = gnewsdecoder(link)
    except Exception:  # noqa: BLE001 - whatever the library met, the link stays unresolved and is counted
        return None
    # versions before 0.2 called the mark "status"
    told = isinstance(answer, dict) and (answer.get("success") or answer.get("status"))
    found = str(answer.get("decoded_url") or "") if told else ""
    return found if found.startswith(("http://", "https://")) and publisher_url(found) == found else None

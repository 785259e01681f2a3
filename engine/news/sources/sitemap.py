"""`type = "sitemap"`: sitemaps and their indexes, news and image extensions, gzip, monthly archives.

The way back in time for a publisher. Options: `max_maps` (how many sitemaps of an index are read, default 50),
`undated` ("keep" or "drop" links without any date, default "drop": a whole site is no week).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError
from engine.core.schema import Code, DateWitness, ImageClaim, Link, Rejected, Window
from engine.news.dates import parse_date
from engine.news.deps import NewsDeps
from engine.news.page.witnesses import witness
from engine.news.sources.base import MARGIN, SourceError, drop, get, latest_of, outside
from engine.web.bodies import gunzip
from engine.web.errors import FetchError
from engine.web.urls import join

MAX_DEPTH = 3


@dataclass(slots=True)
class MapEntry:
    """One <url> or <sitemap>. `news_date` and `lastmod` as they were written."""

    loc: str
    lastmod: str = ""
    news_date: str = ""
    title: str = ""
    publication: str = ""
    language: str = ""
    images: list[ImageClaim] = field(default_factory=list)


class SitemapSource:
    """Links of a publisher's sitemap; of an index only those maps that can hold the window are read."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]:
        max_maps = row.options.get("max_maps", 50)
        keep_undated = row.options.get("undated", "drop") == "keep"
        if not isinstance(max_maps, int) or max_maps < 1:
            raise ConfigError(f"source '{row.name}': options.max_maps is a number of at least 1")
        found: list[Link | Rejected] = []
        queue: list[tuple[str, int]] = [(row.url, 0)]
        done: set[str] = set()
        while queue and len(done) < max_maps:
            place, depth = queue.pop(0)
            if place in done:
                continue
            done.add(place)
            try:
                body, _, url = await get(deps.fetcher, place)
                kind, entries = read_sitemap(body, url)
            except SourceError as error:
                if depth == 0:
                    raise
                found.append(drop(place, row, error.code, error.detail))
                continue
            if kind == "index":
                if depth < MAX_DEPTH:
                    queue += [(e.loc, depth + 1) for e in entries if may_hold(e, window)]
                continue
            found += [_link(entry, row, window, keep_undated) for entry in entries]
        for place, _ in queue:
            found.append(drop(place, row, Code.LIMIT, f"more than {max_maps} sitemaps"))
        return found


def _link(entry: MapEntry, row: SourceSection, window: Window, keep_undated: bool) -> Link | Rejected:
    latest = latest_of(window)
    witnesses: list[DateWitness] = []
    if read := parse_date(entry.news_date, latest=latest):
        witnesses.append(witness("sitemap", read, entry.news_date, credible=row.credible_feed_date))
    if read := parse_date(entry.lastmod, latest=latest):
        witnesses.append(witness("sitemap", read, entry.lastmod, role="modified"))
    if why := outside(witnesses, window):
        return drop(entry.loc, row, Code.OUTSIDE_WINDOW, why)
    if not witnesses and not keep_undated:
        return drop(entry.loc, row, Code.NO_DATE, "the sitemap gives no date; options.undated = 'keep' would read it")
    return Link(
        url=entry.loc,
        source=row.name,
        source_type="sitemap",
        publisher=row.publisher or entry.publication,
        title=entry.title,
        section=row.section,
        witnesses=tuple(witnesses),
        images=tuple(entry.images),
    )


def read_sitemap(body: bytes, url: str) -> tuple[str, list[MapEntry]]:
    """("index" or "urls", entries) of a sitemap, gzipped or not, or of a plain list of URLs. Raises `SourceError`."""
    import lxml.etree

    if body[:2] == b"\x1f\x8b":
        try:
            body = gunzip(body)
        except FetchError as error:
            raise SourceError(Code.SOURCE_UNREACHABLE, error.detail) from error
    if not body.strip():
        raise SourceError(Code.SOURCE_NOT_A_FEED, "an empty answer")
    parser = lxml.etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = lxml.etree.fromstring(body.lstrip(), parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        root = None
    name = _local(root.tag) if root is not None else ""
    if name == "sitemapindex":
        return "index", list(_entries(root, url))
    if name == "urlset":
        return "urls", list(_entries(root, url))
    lines = [line.strip() for line in body[:1_000_000].decode("utf-8", errors="ignore").splitlines() if line.strip()]
    if lines and all(line.startswith(("http://", "https://")) for line in lines[:20]):
        return "urls", [MapEntry(loc=line) for line in lines if line.startswith("http")]
    raise SourceError(Code.SOURCE_NOT_A_FEED, "the answer is not a sitemap")


def _entries(root: Any, url: str) -> Iterator[MapEntry]:
    for node in root:
        if not isinstance(node.tag, str) or _local(node.tag) not in ("url", "sitemap"):
            continue
        entry = MapEntry(loc="")
        for child in node.iter():
            if not isinstance(child.tag, str):
                continue
            text = " ".join((child.text or "").split())
            match (_local(child.getparent().tag), _local(child.tag)):
                case (("url" | "sitemap"), "loc"):
                    entry.loc = join(url, text)
                case (("url" | "sitemap"), "lastmod"):
                    entry.lastmod = text
                case ("news", "publication_date"):
                    entry.news_date = text
                case ("news", "title"):
                    entry.title = text
                case ("publication", "name"):
                    entry.publication = text
                case ("publication", "language"):
                    entry.language = text
                case ("image", "loc"):
                    place = join(url, text)
                    if place:
                        entry.images.append(ImageClaim(url=place, role="feed"))
                case ("image", "caption") if entry.images:
                    entry.images[-1] = entry.images[-1].model_copy(update={"caption": text})
                case ("image", "license") if entry.images:
                    entry.images[-1] = entry.images[-1].model_copy(update={"rights": text})
        if entry.loc:
            yield entry


def _local(tag: object) -> str:
    return str(tag).rsplit("}", 1)[-1].lower()


def may_hold(entry: MapEntry, window: Window) -> bool:
    """Whether a map of an index can list the window's articles, by the period in its name and by its lastmod."""
    period = period_in(entry.loc)
    if period is not None:
        return period[0] < window.end + MARGIN and window.start - MARGIN < period[1]
    read = parse_date(entry.lastmod)
    return read is None or read.value >= window.start - MARGIN


def period_in(url: str) -> tuple[datetime, datetime] | None:
    """Half-open period that a map's name states: a day, a month or a year, e.g. sitemap-2024-11.xml."""
    path = re.sub(r"^https?://[^/]+", "", url)
    if match := re.search(r"(?<!\d)(20\d\d|19\d\d)[-_/]?(0[1-9]|1[0-2])[-_/]?(0[1-9]|[12]\d|3[01])(?!\d)", path):
        try:
            day = datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
        except ValueError:
            return None
        return day, day + timedelta(days=1)
    year_param = re.search(r"(?i)(?:yyyy|year)=(\d{4})", path)
    month_param = re.search(r"(?i)(?:mm|month)=(\d{1,2})", path)
    if year_param and month_param and 1 <= int(month_param[1]) <= 12:
        return _month(int(year_param[1]), int(month_param[1]))
    if match := re.search(r"(?<!\d)(20\d\d|19\d\d)[-_/]?(0[1-9]|1[0-2])(?!\d)", path):
        return _month(int(match[1]), int(match[2]))
    if match := re.search(r"(?<!\d)(20\d\d|19\d\d)(?!\d)", path):
        year = int(match[1])
        return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    return None


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    start = datetime(year, month, 1, tzinfo=UTC)
    return start, start + timedelta(days=calendar.monthrange(year, month)[1])

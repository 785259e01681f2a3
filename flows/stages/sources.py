"""The configured sources, tried now: what each shows, and whether its pages may be fetched."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.config import Config, SourceSection
from engine.core.errors import NestError
from engine.core.schema import Link, Rejected, Window
from engine.core.store import Home

if TYPE_CHECKING:
    from engine.news.deps import NewsDeps
    from engine.web.client import WebClient

DAYS_BACK = 28
#: Pages of a source whose robots.txt is asked, each of another host at best.
HOSTS_ASKED = 3
#: Newest pages of a source that are looked at for pictures and captions: enough to see whether there are any.
PAGES_LOOKED_AT = 3


@dataclass(frozen=True, slots=True)
class SourceState:
    """What one source shows now. `state` is good, warn (it shows nothing, or some of its pages may not be fetched),
    bad or paused. `robots` says what robots.txt and AI opt-outs allow for its pages. `oldest` is the earliest day of a
    dated item within the last four weeks, and `per_day` counts items per day since then; `pictured` and `captioned` are
    shares of items that come with a picture, and with a caption: of `pages` newest items whose pages were looked at, or
    of all in the feed where that tells enough.
    """

    name: str
    state: str
    items: int = 0
    oldest: str = ""
    per_day: float = 0.0
    pictured: float = 0.0
    captioned: float = 0.0
    pages: int = 0
    robots: str = ""
    detail: str = ""


def rows_of(config: Config) -> list[SourceSection]:
    """The rows with the paths of archives as the configuration means them: relative to its file, wherever a process
    runs."""
    return [
        row.model_copy(update={"url": str(config.resolve(Path(row.url)))})
        if row.type == "archive" and row.url and "://" not in row.url
        else row
        for row in config.source
    ]


async def check_sources(config: Config, *, now: datetime | None = None) -> list[SourceState]:
    """Ask every source once, all at a time, and look at a few of its newest pages.

    A row that cannot be asked is bad and stops no other.
    """
    from engine.news.deps import NewsDeps
    from engine.web.client import WebClient

    today = (now or datetime.now(UTC)).date()
    async with WebClient(config.collect, cache=Home(config.home).cache("http")) as client:
        deps = NewsDeps(fetcher=client, blobs=Home(config.home).blobs)
        return await asyncio.gather(*(_check(row, config, client, deps, today) for row in rows_of(config)))


async def _check(row: SourceSection, config: Config, client: WebClient, deps: NewsDeps, today: date) -> SourceState:
    from engine.news.sources.base import SourceError
    from engine.news.sources.registry import ready

    if row.paused:
        return SourceState(row.name, "paused")
    window = Window(first=today - timedelta(days=DAYS_BACK - 1), last=today)
    try:
        found = await ready(row).links(window, row, config.collect, deps=deps)
    except SourceError as error:
        return SourceState(row.name, "bad", detail=f"{error.code.value}: {error.detail}")
    except NestError as error:
        return SourceState(row.name, "bad", detail=str(error))
    except Exception as error:  # noqa: BLE001 - a fault in one source, perhaps a plugin's, must not end the others
        return SourceState(row.name, "bad", detail=f"{type(error).__name__}: {error}"[:300])
    robots = await _robots(found, client)
    state = _state(row.name, found, today, robots=robots)
    if robots[0] == "bad" or state.captioned == 1.0:
        return state
    looks = await _look_at_pages([item for item in found if isinstance(item, Link)], client)
    if not looks:
        return state
    share = {"pictured": sum(p for p, _ in looks), "captioned": sum(c for _, c in looks)}
    told = {name: round(count / len(looks), 2) for name, count in share.items()}
    return replace(state, pages=len(looks), pictured=told["pictured"], captioned=told["captioned"])


async def _look_at_pages(links: Sequence[Link], client: WebClient) -> list[tuple[bool, bool]]:
    """Whether each of the newest pages has a picture, and one with a caption; pages that cannot be had are left out."""
    from engine.news.extract import pictures_of
    from engine.web.errors import FetchError

    def newest(link: Link) -> tuple[datetime, str]:
        return max((w.value for w in link.witnesses), default=datetime.min.replace(tzinfo=UTC)), link.url

    found = []
    for link in sorted((link for link in links if not link.html_sha256), key=newest, reverse=True)[:PAGES_LOOKED_AT]:
        try:
            page = await client.fetch(link.url, kind="page")
        except FetchError:
            continue
        claims = [*pictures_of(page.body, page.url, headers=dict(page.headers)), *link.images]
        found.append((bool(claims), any(claim.caption for claim in claims)))
    return found


async def _robots(found: Sequence[Link | Rejected], client: WebClient) -> tuple[str, str]:
    """(state, words) of what the pages' hosts allow: good, warn if some refuse, bad if all do."""
    from engine.web.urls import host_of

    pages: dict[str, str] = {}
    for link in found:
        if isinstance(link, Link) and not link.html_sha256:
            pages.setdefault(host_of(link.url), link.url)
    asked = list(pages.items())[:HOSTS_ASKED]
    if not asked:
        return "good", ""
    told = [(host, *await client.permission(url)) for host, url in asked]
    refusing = [(host, why) for host, allowed, why in told if not allowed]
    if refusing:
        words = ", ".join(why if len(asked) == 1 else f"{host}: {why}" for host, why in refusing)
        return ("bad" if len(refusing) == len(asked) else "warn"), words
    delays = [why for _, _, why in told if why]
    return "good", "allowed" + (f", {delays[0]}" if delays else "")


def _state(name: str, found: Sequence[Link | Rejected], today: date, *, robots: tuple[str, str]) -> SourceState:
    links = [item for item in found if isinstance(item, Link)]
    lost = Counter(item.code.value for item in found if isinstance(item, Rejected))
    told = ", ".join(f"{count} {code}" for code, count in sorted(lost.items()))
    if not links:
        return SourceState(name, "warn", detail=told or "it answered and shows nothing")
    days = [min(w.value for w in link.witnesses).date() for link in links if link.witnesses]
    oldest = min(days) if days else None
    span = max(1, (today - oldest).days + 1) if oldest else 1
    return SourceState(
        name,
        robots[0],
        items=len(links),
        oldest=oldest.isoformat() if oldest else "",
        per_day=round(len(links) / span, 1),
        pictured=round(sum(bool(link.images) for link in links) / len(links), 2),
        captioned=round(sum(any(i.caption for i in link.images) for link in links) / len(links), 2),
        robots=robots[1],
        detail=told,
    )

"""Remembering what sources show before they forget it: feeds keep their newest items, news sitemaps two days.

A round asks every source and writes each new link once, with the moment it was first seen, into
`<store>/<source>/<year>-<week>.jsonl`; pages and pictures are fetched into the fetcher's cache while they are still
there. `Harvested` reads it back for `find`. Safe to repeat and to interrupt: lines are only added, a cut line is
passed over.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import NestError
from engine.core.schema import Code, Link, Window, canonical_json
from engine.core.store.files import disk_error
from engine.news.deps import NewsDeps
from engine.news.rounds import ROUNDS, SourceRound, hours_since_last, lines_of
from engine.news.sources import SourceError, ready
from engine.news.sources.base import outside
from engine.web.errors import FetchError
from engine.web.urls import url_key

#: A source is asked for this much of the past; older items were there before the harvest began.
REACH_DAYS = 14
#: Pictures of a new page that are fetched with it.
PICTURES = 3


@dataclass(frozen=True, slots=True)
class HarvestReport:
    """What a round brought; `pages` and `pages_failed` count the new links' pages."""

    at: datetime
    sources: tuple[SourceRound, ...] = ()
    pages: int = 0
    pages_failed: int = 0
    gap_hours: float | None = None

    @property
    def new(self) -> int:
        return sum(item.new for item in self.sources)

    def lines(self) -> list[str]:
        """The round in words, a line per source."""
        told = [
            f"{item.source}: {item.failure}" if item.failure else f"{item.source}: {item.shown} links, {item.new} new"
            for item in self.sources
        ]
        gap = f", {self.gap_hours:.1f} hours after the last round" if self.gap_hours is not None else ""
        return [*told, f"{self.new} new links, {self.pages} pages kept, {self.pages_failed} could not be had{gap}"]


async def harvest(
    sources: Sequence[SourceSection],
    config: CollectSection,
    *,
    deps: NewsDeps,
    store: Path,
    now: datetime,
    fetch_pages: bool = True,
) -> HarvestReport:
    """One round. `now` is the aware instant that becomes "first seen" of what is new. A bad source stops no other.

    Raises `TerminalError` where the store cannot be written.
    """
    last_day = (now + timedelta(days=1)).date()
    window = Window(first=last_day - timedelta(days=REACH_DAYS), last=last_day)
    active = [row for row in sources if not row.paused]
    memory = Harvested(store)
    gap = hours_since_last(store, now)
    results = await asyncio.gather(*(_ask(row, window, config, deps) for row in active))
    rounds: list[SourceRound] = []
    fresh: list[Link] = []
    for row, (links, failure) in zip(active, results, strict=True):
        known = {url_key(link.url) for link in memory.of(row.name, window)}
        new = []
        for link in links:
            key = url_key(link.url)
            if key not in known:
                known.add(key)
                new.append(link.model_copy(update={"first_seen": now.astimezone(UTC)}))
        _append(_file(store, row.name, now.date()), [link.line() for link in new])
        rounds.append(SourceRound(row.name, len(links), len(new), failure))
        fresh += new
    pages, failed = await _keep_pages(fresh, deps) if fetch_pages else (0, 0)
    report = HarvestReport(now, tuple(rounds), pages, failed, gap)
    told = [[item.source, item.shown, item.new, item.failure] for item in rounds]
    _append(store / ROUNDS, [canonical_json({"at": now.astimezone(UTC).isoformat(), "sources": told})])
    return report


async def _ask(row: SourceSection, window: Window, config: CollectSection, deps: NewsDeps) -> tuple[list[Link], str]:
    try:
        found = await ready(row).links(window, row, config, deps=deps)
    except SourceError as error:
        return [], f"{error.code.value}: {error.detail}"
    except NestError:
        raise
    except Exception as error:  # noqa: BLE001 - a fault in one source must not end the round for the others
        return [], f"{Code.INTERNAL.value}: {type(error).__name__}: {error}"[:300]
    return [item for item in found if isinstance(item, Link)], ""


async def _keep_pages(links: Sequence[Link], deps: NewsDeps) -> tuple[int, int]:
    """Fetch new pages and their first pictures, so that the cache has them when the week is over."""
    # here: reading pages takes packages that `nest status`, which reads the rounds, must not load
    from engine.news.extract import pictures_of

    parsing = asyncio.Semaphore(2)

    async def one(link: Link) -> bool:
        try:
            page = await deps.fetcher.fetch(link.url, kind="page")
        except FetchError:
            return False
        async with parsing:
            found = await asyncio.to_thread(pictures_of, page.body, page.url, headers=page.headers)
        # the lead picture first: it is what most articles have
        ordered = sorted(found, key=lambda claim: claim.role != "lead") or link.images
        for claim in ordered[:PICTURES]:
            with suppress(FetchError):
                await deps.fetcher.fetch(claim.url, kind="image")
        return True

    kept = await asyncio.gather(*(one(link) for link in links))
    return sum(kept), len(kept) - sum(kept)


@dataclass(frozen=True, slots=True)
class Harvested:
    """The store read back; implements `engine.news.deps.Memory`."""

    store: Path
    _seen: dict[str, list[Link]] = field(default_factory=dict, compare=False, repr=False)

    def links(self, window: Window, sources: Iterable[str]) -> list[Link]:
        """Remembered links of the named sources whose own dates do not lie clearly outside, first seen not before the
        window began."""
        return [
            link
            for name in sources
            for link in self.of(name, window)
            if link.first_seen is not None and link.first_seen >= window.start and not outside(link.witnesses, window)
        ]

    def of(self, source: str, window: Window) -> Iterator[Link]:
        """Links of one source seen from the window's begin to four weeks after its end, each address once."""
        seen: set[str] = set()
        day = window.first - timedelta(days=7)
        while day <= window.last + timedelta(days=28):
            for link in _read(_file(self.store, source, day)):
                key = url_key(link.url)
                if key not in seen:
                    seen.add(key)
                    yield link
            day += timedelta(days=7)
            # weeks are files: step from Monday to Monday
            day -= timedelta(days=day.weekday())


def _file(store: Path, source: str, day: date) -> Path:
    year, week, _ = day.isocalendar()
    safe = re.sub(r"[^\w.\-]+", "_", source)
    return store / safe / f"{year}-W{week:02d}.jsonl"


def _read(path: Path) -> Iterator[Link]:
    for line in lines_of(path):
        try:
            yield Link.read(json.loads(line))
        except ValueError:
            # a line that a crash cut short; what it held is seen again in the next round
            continue


def _append(path: Path, lines: Sequence[str]) -> None:
    if not lines:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as handle:
            if handle.tell() and not _ends_well(path):
                handle.write(b"\n")
            handle.write("".join(line + "\n" for line in lines).encode())
    except OSError as error:
        raise disk_error(path, error) from error


def _ends_well(path: Path) -> bool:
    with path.open("rb") as handle:
        handle.seek(-1, 2)
        return handle.read(1) == b"\n"

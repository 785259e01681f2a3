"""Trying the configured sources: does each answer, how far back does it reach, what do its items carry."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from engine.core.config import Config
from engine.core.schema import Link, Rejected, Window
from engine.core.store import Home

DAYS_BACK = 28


@dataclass(frozen=True, slots=True)
class SourceState:
    """What one source shows now. `oldest` is the earliest day of a dated item within the last four weeks, and
    `per_day` counts items per day since then; `pictured` and `captioned` are shares of items that come with a picture
    or a caption in the feed itself (pages may have them where feeds do not)."""

    name: str
    state: str
    items: int = 0
    oldest: str = ""
    per_day: float = 0.0
    pictured: float = 0.0
    captioned: float = 0.0
    detail: str = ""


async def check_sources(config: Config, *, now: datetime | None = None) -> list[SourceState]:
    """Ask every source once, without fetching any article."""
    from engine.news.deps import NewsDeps
    from engine.news.sources.base import SourceError
    from engine.news.sources.registry import source_type
    from engine.web.client import WebClient

    today = (now or datetime.now(UTC)).date()
    window = Window(first=today - timedelta(days=DAYS_BACK - 1), last=today)
    states = []
    async with WebClient(config.collect, cache=Home(config.home).cache("http")) as client:
        deps = NewsDeps(fetcher=client, blobs=Home(config.home).blobs)
        for row in config.source:
            if row.paused:
                states.append(SourceState(row.name, "paused"))
                continue
            try:
                found = await source_type(row.type).links(window, row, config.collect, deps=deps)
            except SourceError as error:
                states.append(SourceState(row.name, "bad", detail=f"{error.code.value}: {error.detail}"))
                continue
            states.append(_state(row.name, found, today))
    return states


def _state(name: str, found: list[Link | Rejected], today: date) -> SourceState:
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
        "good",
        items=len(links),
        oldest=oldest.isoformat() if oldest else "",
        per_day=round(len(links) / span, 1),
        pictured=round(sum(bool(link.images) for link in links) / len(links), 2),
        captioned=round(sum(any(i.caption for i in link.images) for link in links) / len(links), 2),
        detail=told,
    )

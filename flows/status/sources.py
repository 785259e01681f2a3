"""How the sources do: in the harvest's rounds of the last four weeks, and by the links each showed for a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.news.rounds import DAYS, ROUNDS, SourceHealth, gaps, health, rounds_of
from flows.status.facts import source_links
from flows.status.weeks import MEDIAN_OF, Week

if TYPE_CHECKING:
    from engine.core.config import Config, SourceSection

#: A source that shows less than this share of what it usually does is amber.
FEW = 0.5
#: From what says least to what is worst.
ORDER = ("paused", "grey", "green", "amber", "red")


@dataclass(frozen=True, slots=True)
class Source:
    """A source's state (one of `ORDER`) and why."""

    name: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """How the sources have done over four weeks of harvest rounds.

    One entry per active source: green; amber: below half its median of new links a day; red: empty or failing in its
    last two rounds; grey: too little is known. Then the stretches without a round (from, until) that let a busy feed
    turn over, and the last round.
    """

    sources: tuple[SourceHealth, ...]
    gaps: tuple[tuple[datetime, datetime], ...]
    last_round: datetime | None


def health_of(home: Path, sources: Sequence[SourceSection], *, now: datetime) -> Health:
    """Read from the harvest's record; asks nobody. Without any round everything is grey and there are no gaps."""
    store = home / "harvest"
    names = [source.name for source in sources if not source.paused]
    times = [moment for moment in rounds_of(store) if moment <= now]
    since = max(times[0], now - timedelta(days=DAYS)) if times else now
    return Health(
        sources=tuple(health(store, names, now=now)),
        gaps=tuple(gaps(store, since=since, until=now)) if times else (),
        last_round=times[-1] if times else None,
    )


def source_states(config: Config, weeks: list[Week], *, now: datetime) -> tuple[list[Source], int]:
    """The harvest's rounds where there are some, and what each source showed for the latest window against its median:
    the worse of the two. Then how many gaps between rounds let a busy feed turn over."""
    active = [source.name for source in config.source if not source.paused]
    rounds: dict[str, Source] = {}
    gaps = 0
    if active and (config.home / "harvest" / ROUNDS).is_file():
        heard = health_of(config.home, config.source, now=now)
        gaps = len(heard.gaps)
        for one in heard.sources:
            rounds[one.source] = Source(one.source, one.state, one.detail)
    recent = [source_links(config.home, week, active) for week in weeks[-1 - MEDIAN_OF :] if not week.pilot]
    found = []
    for source in config.source:
        if source.paused:
            found.append(Source(source.name, "paused"))
            continue
        own = _by_links(source.name, recent)
        by_rounds = rounds.get(source.name, Source(source.name, "grey", "no rounds"))
        found.append(max(own, by_rounds, key=lambda one: ORDER.index(one.state)))
    return found, gaps


def _by_links(name: str, recent: list[dict[str, int]]) -> Source:
    counts = [links[name] for links in recent if name in links]
    if not counts:
        return Source(name, "grey", "nothing collected yet")
    last, before = counts[-1], sorted(counts[:-1])
    usual = before[len(before) // 2] if before else None
    if last == 0 and usual != 0:
        return Source(name, "red", "no links this week" + (f", usually {usual}" if usual else ""))
    if usual and last < FEW * usual:
        return Source(name, "amber", f"{last} links this week, usually {usual}")
    return Source(name, "green", f"{last} links this week")

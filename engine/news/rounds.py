"""The record of harvest rounds: when each was, what every source showed, and what that says of a source's health.

One line per round in `<store>/rounds.jsonl`. Read alone it takes no other part of the engine, and of years of rounds
only the last weeks are parsed: `nest status` asks for it each time.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

ROUNDS = "rounds.jsonl"
#: A gap between two rounds that lets a busy feed turn over.
GAP = timedelta(hours=12)
#: A source's health is told from the rounds of so many days.
DAYS = 28
#: A whole line, and the moment it begins with: older rounds are passed over without parsing them.
_LINE = re.compile(r'\{"at":\s?"([^"]+)",.*\}\s*')


@dataclass(frozen=True, slots=True)
class SourceRound:
    """One source in one round: links it showed, new ones among them, and why it failed if it did."""

    source: str
    shown: int
    new: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """State of a source: green, amber (below half its four-week median of new links a day), red (empty or failing in
    its last two rounds), or grey (too little is known)."""

    source: str
    state: str
    detail: str
    last_new: datetime | None = None


def health(store: Path, sources: Iterable[str], *, now: datetime) -> list[SourceHealth]:
    """How each source does, from the rounds of the last four weeks."""
    mine: dict[str, list[tuple[datetime, SourceRound]]] = {}
    for at, entries in _rounds(store, since=now - timedelta(days=DAYS), until=now):
        for entry in entries:
            mine.setdefault(entry.source, []).append((at, entry))
    return [_health(name, mine.get(name, [])) for name in sources]


def gaps(store: Path, *, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """Stretches without a round that are longer than `GAP`."""
    times = [since, *(at for at in rounds_of(store) if since <= at <= until), until]
    return [(a, b) for a, b in itertools.pairwise(times) if b - a > GAP]


def rounds_of(store: Path) -> list[datetime]:
    """The moments of all rounds, in order."""
    return sorted(at for at, _ in _dated(store))


def hours_since_last(store: Path, now: datetime) -> float | None:
    """Hours between the last round and now, None before the first."""
    last = max(rounds_of(store), default=None)
    return None if last is None else round((now - last).total_seconds() / 3600, 2)


def lines_of(path: Path) -> Iterator[str]:
    """A file's lines, none where there is no file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as handle:
            yield from handle
    except FileNotFoundError:
        return


def _health(name: str, mine: Sequence[tuple[datetime, SourceRound]]) -> SourceHealth:
    last_new = max((at for at, entry in mine if entry.new), default=None)
    if len(mine) < 2:
        return SourceHealth(name, "grey", "fewer than two rounds", last_new)
    if all(entry.shown == 0 for _, entry in mine[-2:]):
        why = mine[-1][1].failure or "no links"
        return SourceHealth(name, "red", f"empty in the last two rounds ({why})", last_new)
    days: dict[date, int] = {}
    for at, entry in mine:
        days[at.date()] = days.get(at.date(), 0) + entry.new
    counts = [days[day] for day in sorted(days)][:-1]
    # the first day brings a feed's whole backlog and says nothing of a usual day
    usual = sorted(counts[1:])
    median = usual[len(usual) // 2] if len(usual) >= 3 else None
    last_full = counts[-1] if counts else None
    if median and last_full is not None and last_full * 2 < median:
        return SourceHealth(name, "amber", f"{last_full} new links a day, usually {median}", last_new)
    return SourceHealth(name, "green", f"{mine[-1][1].shown} links shown", last_new)


def _rounds(store: Path, *, since: datetime, until: datetime) -> Iterator[tuple[datetime, list[SourceRound]]]:
    for at, line in _dated(store):
        if since <= at <= until:
            try:
                yield at, [SourceRound(*entry) for entry in json.loads(line)["sources"]]
            except (ValueError, KeyError, TypeError):
                continue


def _dated(store: Path) -> Iterator[tuple[datetime, str]]:
    for line in lines_of(store / ROUNDS):
        if (found := _LINE.fullmatch(line)) is None:
            continue  # a line that a full disk cut
        try:
            at = datetime.fromisoformat(found[1])
        except ValueError:
            continue
        if at.tzinfo is not None:
            yield at, line

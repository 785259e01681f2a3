"""Reading one written date. A date that nobody wrote is never made up: what is ambiguous or impossible is None.

No clock: `latest` is the first instant that cannot be a publication date any more, and the caller knows it.
Which of several dates counts is decided in `decide`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

from engine.news.monthnames import AMBIGUOUS_ZONES, MONTHS, ZONES

#: Before the web carried news; epoch zero and other defaults of content systems lie below (htmldate has the same).
EARLIEST = datetime(1995, 1, 1, tzinfo=UTC)
MAX_OFFSET = timedelta(hours=14)

_MONTH = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
_PATTERNS = (
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<![\d/])(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})(?![\d/])"),
    re.compile(r"(?<![\d.])(?P<y>\d{4})\.(?P<m>\d{1,2})\.(?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?P<y>\d{4})\s*年\s*(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})\s*日"),
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})(?=T\d|$|\s)"),
    re.compile(
        rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.|º|er)?[\s\-]+(?:de\s+|of\s+)?(?P<mn>{_MONTH})\b\.?,?[\s\-]*"
        r"(?:de\s+|del\s+)?(?P<y>\d{4}|\d{2})(?![\d:])",
        re.I,
    ),
    re.compile(rf"\b(?P<mn>{_MONTH})\b\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<y>\d{{4}})(?!\d)", re.I),
    re.compile(
        rf"\b(?P<mn>{_MONTH})\s+(?P<d>\d{{1,2}})\s+(?P<clock>\d{{1,2}}:\d{{2}}(?::\d{{2}})?)\s+"
        r"(?P<zone>[A-Z]{2,5}|[+-]\d{4})?\s*(?P<y>\d{4})(?!\d)",
        re.I,
    ),
    re.compile(r"(?<![\d.])(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})(?!\d)"),
    re.compile(r"(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4})(?!\d)"),
    re.compile(r"(?<![\d-])(?P<a>\d{1,2})-(?P<b>\d{1,2})-(?P<y>\d{4})(?!\d)"),
)
_CLOCK = re.compile(
    r"(?<![\d:+-])(?P<h>\d{1,2})(?:[:h](?P<mi>\d{2})(?:[:.](?P<s>\d{2})(?:[.,]\d+)?)?)?\s*(?P<ap>[ap]\.?\s?m\b\.?)?"
    r"(?P<rest>.*)",
    re.I | re.S,
)
_COMPACT_CLOCK = re.compile(r"^T(?P<h>\d{2})(?P<mi>\d{2})(?P<s>\d{2})?(?P<rest>.*)", re.I | re.S)
_OFFSET = re.compile(r"^\s*(?:GMT|UTC)?\s*(?P<sign>[+\-−])(?P<h>\d{2}):?(?P<m>\d{2})?(?!\d)", re.I)
_ZONE_NAME = re.compile(r"^\s*\(?\s*([A-Za-z]{1,5})\b")


@dataclass(frozen=True, slots=True)
class DateRead:
    """A date as it was written. `value` is aware UTC; for precision "day" it is midnight UTC of the written day.

    `zone`: "stated" if an offset was written, "assumed" if a time came without one (UTC is assumed), "none" for a day.
    `local_day_offset` is the stated offset, so that the day as its writer saw it can be told.
    """

    value: datetime
    precision: Literal["second", "day"]
    zone: Literal["stated", "assumed", "none"]
    note: str = ""


def parse_date(raw: str, *, latest: datetime | None = None, day_first: bool | None = None) -> DateRead | None:
    """Read a date. `day_first` settles 05/03/2026 where the language is known (the note then says so).

    None for no date, an impossible one, one before 1995 or not before `latest`, an ambiguous day order, an unknown or
    ambiguous zone name, and for relative words.
    """
    text = " ".join(unicodedata.normalize("NFKC", raw).split())
    if not text or len(text) > 400:
        return None
    found = _epoch(text) if text.isdigit() else _written(text, day_first)
    if found is None or found.value < EARLIEST or (latest is not None and found.value >= latest):
        return None
    return found


def _epoch(text: str) -> DateRead | None:
    if len(text) in (10, 13):
        seconds = int(text) / (1000 if len(text) == 13 else 1)
        return DateRead(datetime.fromtimestamp(seconds, UTC).replace(microsecond=0), "second", "stated", "unix time")
    if len(text) == 14:
        return _build(int(text[:4]), int(text[4:6]), int(text[6:8]), f"{text[8:10]}:{text[10:12]}:{text[12:]}", "")
    if len(text) == 8 and text[:2] in ("19", "20"):
        return _build(int(text[:4]), int(text[4:6]), int(text[6:8]), "", "")
    return None


def _written(text: str, day_first: bool | None) -> DateRead | None:
    best = min(
        (match for pattern in _PATTERNS if (match := pattern.search(text))), key=lambda m: m.start(), default=None
    )
    if best is None:
        return None
    groups = best.groupdict()
    year = int(groups["y"])
    if len(groups["y"]) == 2:
        year += 2000 if year < 70 else 1900
    note = ""
    if groups.get("a"):
        first, second = int(groups["a"]), int(groups["b"])
        if first > 12 or (first <= 12 and second <= 12 and day_first):
            day, month = first, second
            note = "" if first > 12 else "day before month, by the page's language"
        elif second > 12:
            day, month = second, first
        elif day_first is False:
            day, month, note = second, first, "month before day, by the page's language"
        else:
            return None
    else:
        day = int(groups["d"])
        month = MONTHS[groups["mn"].lower()] if groups.get("mn") else int(groups["m"])
    if groups.get("clock"):
        return _build(year, month, day, f"{groups['clock']} {groups.get('zone') or ''}", note)
    after = text[best.end() :].lstrip(" ,-–|•·")
    before = text[: best.start()]
    clock = (
        after
        if re.match(r"(?i)(T|at |um |à |\(?\d{1,2}[:h])", after) or re.match(r"\d{1,2}\s?[ap]\.?m", after, re.I)
        else ""
    )
    if not clock:
        told = re.search(r"\d{1,2}:\d{2}(?::\d{2})?(?:\s*[ap]\.?m\.?)?\s*[A-Z+\-\d:]{0,6}\W*$", before, re.I)
        clock = told[0].rstrip(" ,-–|•·") if told else ""
    return _build(year, month, day, clock, note)


def _build(year: int, month: int, day: int, clock: str, note: str) -> DateRead | None:
    try:
        base = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    if not clock:
        return DateRead(base, "day", "none", note)
    match = _COMPACT_CLOCK.match(clock) or _CLOCK.search(clock)
    if match is None or not (match["mi"] or match.groupdict().get("ap")):
        return DateRead(base, "day", "none", note)
    hour, minute, second = int(match["h"]), int(match["mi"] or 0), int(match["s"] or 0)
    half = (match.groupdict().get("ap") or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if (hour, minute, second) == (24, 0, 0):
        base, hour = base + timedelta(days=1), 0
    if hour > 23 or minute > 59 or second > 60:
        return None
    local = base + timedelta(hours=hour, minutes=minute, seconds=min(second, 59))
    offset = _offset(match["rest"])
    if offset == "unknown":
        return None
    if offset is None:
        return DateRead(local, "second", "assumed", note or "no zone is written, UTC is assumed")
    assert isinstance(offset, timedelta)
    return DateRead(local.replace(tzinfo=timezone(offset)).astimezone(UTC), "second", "stated", note)


def _offset(rest: str) -> timedelta | Literal["unknown"] | None:
    """Offset after a time: None if nothing is written, "unknown" if what is written cannot be relied on."""
    if match := _OFFSET.match(rest):
        hours, minutes = int(match["h"]), int(match["m"] or 0)
        offset = timedelta(hours=hours, minutes=minutes)
        if minutes > 59 or offset > MAX_OFFSET:
            return "unknown"
        return offset if match["sign"] == "+" else -offset
    if re.match(r"^\s*[+\-]\d", rest):
        return "unknown"
    if match := _ZONE_NAME.match(rest):
        name = match[1]
        if name.lower() in ZONES and (name.isupper() or name.lower() == "z"):
            return timedelta(minutes=ZONES[name.lower()])
        if name.isupper() and (name.lower() in AMBIGUOUS_ZONES or 3 <= len(name) <= 4):
            return "unknown"
    return None

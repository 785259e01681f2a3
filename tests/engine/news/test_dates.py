"""Written dates: the feed zoo (case 01), and laws that hold for any text."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.news.dates import EARLIEST, parse_date
from engine.news.feedread import read_feed

CASES = Path(__file__).parents[2] / "data" / "cases"
LATEST = datetime(2026, 3, 12, tzinfo=UTC)
FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (1996, 2035))


def zoo() -> list[tuple[str, str, str | None, bool]]:
    expected = json.loads((CASES / "01-feed-date-zoo" / "expected.json").read_text())
    found = []
    for line in (CASES / "01-feed-date-zoo" / "feed.xml").read_text(encoding="utf-8").splitlines():
        if match := re.search(r"<title>Item (d\d\d)</title>", line):
            raw = re.search(r"<(?:pubDate|dc:date)>(.*?)</", line)
            item = expected[match[1]]
            found.append((match[1], raw[1] if raw else "", item["published"], item["in_window"]))
    return found


@pytest.mark.parametrize(("name", "raw", "right", "in_window"), zoo())
def test_the_zoo_of_feed_dates(name: str, raw: str, right: str | None, in_window: bool) -> None:
    read = parse_date(raw, latest=LATEST)
    value = f"{read.value:%Y-%m-%dT%H:%M:%SZ}" if read else None
    assert value == right
    inside = read is not None and datetime(2026, 3, 2, tzinfo=UTC) <= read.value < datetime(2026, 3, 9, tzinfo=UTC)
    assert inside is in_window


def test_the_zoo_through_the_feed_reader_gives_the_same_dates() -> None:
    body = (CASES / "01-feed-date-zoo" / "feed.xml").read_bytes()
    feed = read_feed(body, "https://northvale.example/feed", latest=LATEST)
    got = {
        entry.title.split()[-1]: (f"{entry.witnesses[0].value:%Y-%m-%dT%H:%M:%SZ}" if entry.witnesses else None)
        for entry in feed.entries
    }
    assert got == {name: right for name, _, right, _ in zoo()}


@pytest.mark.parametrize("name", ["d08", "d11", "d16"])
def test_an_assumed_zone_is_flagged(name: str) -> None:
    raw = next(raw for found, raw, _, _ in zoo() if found == name)
    read = parse_date(raw)
    assert read is not None
    assert read.zone == "assumed"


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("2026-03-04", "2026-03-04T00:00:00Z day none"),
        ("20260304T101500Z", "2026-03-04T10:15:00Z second stated"),
        ("2026-03-04T10:15:00.123456+05:30", "2026-03-04T04:45:00Z second stated"),
        ("March 4, 2026 at 9:30 p.m. EST", "2026-03-05T02:30:00Z second stated"),
        ("4. März 2026, 09:30 Uhr", "2026-03-04T09:30:00Z second assumed"),
        ("4 de marzo de 2026", "2026-03-04T00:00:00Z day none"),
        ("le 4 mars 2026 à 18h05", "2026-03-04T18:05:00Z second assumed"),
        ("Wed Mar 04 09:30:00 +0100 2026", "2026-03-04T08:30:00Z second stated"),
        ("2026年3月4日", "2026-03-04T00:00:00Z day none"),
        ("Published 1st Mar 2026", "2026-03-01T00:00:00Z day none"),
        ("20260304", "2026-03-04T00:00:00Z day none"),
        ("20260304093000", "2026-03-04T09:30:00Z second assumed"),
        ("13/03/2026", "2026-03-13T00:00:00Z day none"),
        ("03/13/2026", "2026-03-13T00:00:00Z day none"),
        ("2026-03-04T24:00:00Z", "2026-03-05T00:00:00Z second stated"),
        ("2026-02-29", None),
        ("2026-03", None),
        ("March 2026", None),
        ("yesterday at 10:00", None),
        ("0001-01-01T00:00:00Z", None),
        ("1900-01-01", None),
        ("12345", None),
        ("", None),
    ],
)
def test_ways_to_write_a_date(raw: str, right: str | None) -> None:
    read = parse_date(raw, latest=datetime(2027, 1, 1, tzinfo=UTC))
    assert (f"{read.value:%Y-%m-%dT%H:%M:%SZ} {read.precision} {read.zone}" if read else None) == right


def test_day_order_follows_the_language_only_where_it_must() -> None:
    first = parse_date("05/03/2026", day_first=True)
    second = parse_date("05/03/2026", day_first=False)
    assert first is not None
    assert second is not None
    assert (first.value.month, second.value.month) == (3, 5)
    assert first.note
    assert parse_date("05/03/2026") is None


@settings(deadline=None)
@given(
    st.datetimes(min_value=FIRST, max_value=LAST),
    st.integers(min_value=-14 * 4, max_value=14 * 4),
)
def test_what_is_written_in_iso_or_rfc_822_is_read_back(naive: datetime, quarters: int) -> None:
    zone = timezone(timedelta(minutes=15 * quarters))
    instant = naive.replace(microsecond=0, tzinfo=zone)
    for raw in (
        instant.isoformat(),
        instant.strftime("%a, %d %b %Y %H:%M:%S %z"),
        instant.strftime("%d %B %Y %H:%M:%S %z"),
    ):
        read = parse_date(raw)
        assert read is not None
        assert read.value == instant
        assert read.zone == "stated"


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"[0-9/.\- :TZ+]{1,30}"))
def test_any_text_gives_a_credible_date_or_none(raw: str) -> None:
    read = parse_date(raw, latest=LATEST)
    assert read is None or EARLIEST <= read.value < LATEST
    if read is not None and read.precision == "day":
        assert (read.value.hour, read.value.minute, read.value.second) == (0, 0, 0)

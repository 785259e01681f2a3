"""No answer of a service gets past a cut-off or a block, whatever dates it and the page claim, in any zone."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.images import encode_png
from engine.core.protocols import Fetched
from engine.core.schema import Code
from engine.web.errors import FetchError
from engine.web.search.guard import read_instant
from engine.web.search.pages import Claim, ReadPage, image_hits, text_hits

CUTOFF = datetime(2026, 3, 6, tzinfo=UTC)
OWN = "https://northvale.example/n/bridge"
PICTURE = encode_png(np.zeros((8, 8, 3), np.uint8))
#: How a date is written: with its zone, as a day, without a zone, or not at all.
FORMS = st.sampled_from(["zoned", "day", "naive", "none"])
MOMENTS = st.one_of(
    st.just(CUTOFF),
    st.just(CUTOFF - timedelta(microseconds=1)),
    st.integers(-2 * 86400, 2 * 86400).map(lambda seconds: CUTOFF + timedelta(seconds=seconds)),
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DATES = st.tuples(MOMENTS, ZONES, FORMS)
PLACES = st.sampled_from(
    [
        "https://x.example/{n}",
        "http://www.northvale.example/n/bridge/?utm_source={n}",
        "https://m.northvale.example/n/bridge#{n}",
        "https://x.example/{n}?page=2",
    ]
)
ROWS = st.lists(st.tuples(DATES, DATES, PLACES), min_size=1, max_size=5)


def written(date: tuple[datetime, timezone, str]) -> str | None:
    moment, zone, form = date
    local = moment.astimezone(zone)
    return {
        "zoned": local.isoformat(),
        "day": local.date().isoformat(),
        "naive": local.replace(tzinfo=None).isoformat(),
        "none": None,
    }[form]


def latest(date: tuple[datetime, timezone, str]) -> datetime | None:
    """The last moment that a written date may mean, by its own words; a time without a zone says nothing."""
    moment, zone, form = date
    if form == "zoned":
        return moment
    if form == "day":
        day = moment.astimezone(zone).date()
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1, microseconds=-1)
    return None


class Pages:
    """Pages by address; one that is not there is gone."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies
        self.asked: list[str] = []

    async def fetch(self, url: str, *, kind: str) -> Fetched:
        self.asked.append(url)
        if url not in self.bodies:
            raise FetchError(Code.FETCH_GONE, "HTTP 404")
        return Fetched(url=url, status=200, headers={}, body=self.bodies[url])


def read(body: bytes, url: str) -> ReadPage:
    told = json.loads(body)
    return ReadPage(url=url, title="t", text=told["text"], published=read_instant(told["date"]))


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_pages(rows: list[tuple[tuple[datetime, timezone, str], tuple[datetime, timezone, str], str]]) -> None:
    bodies: dict[str, bytes] = {}
    claims, may = [], []
    for n, (claimed, said, place) in enumerate(rows):
        url = place.format(n=n)
        bodies[url] = json.dumps({"text": f"text{n}", "date": written(said)}).encode()
        claims.append(Claim(url=url, published=read_instant(written(claimed))))
        known = [instant for instant in (latest(claimed), latest(said)) if instant is not None]
        if known and max(known) < CUTOFF and "northvale" not in url:
            may.append(f"text{n}")
    pages = Pages(bodies)
    hits = asyncio.run(text_hits(claims, fetcher=pages, read=read, limit=5, until=CUTOFF, blocked=[OWN]))
    # later rows may overwrite the page of an earlier one with the same address, never the other way round
    assert {hit.text for hit in hits} <= {json.loads(bodies[c.url])["text"] for c in claims}
    assert [hit.text for hit in hits] == may
    assert not [url for url in pages.asked if "northvale" in url]


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_pictures(rows: list[tuple[tuple[datetime, timezone, str], tuple[datetime, timezone, str], str]]) -> None:
    claims, may = [], []
    for n, (claimed, _, place) in enumerate(rows):
        claims.append(
            Claim(
                url=place.format(n=n),
                published=read_instant(written(claimed)),
                image_url=f"https://i.example/{n}.png",
            )
        )
        last = latest(claimed)
        if last is not None and last < CUTOFF and "northvale" not in place:
            may.append(f"https://i.example/{n}.png")
    pages = Pages({f"https://i.example/{n}.png": PICTURE for n in range(len(rows))})
    hits = asyncio.run(image_hits(claims, fetcher=pages, limit=5, until=CUTOFF, blocked=[OWN]))
    assert [hit.url for hit in hits] == may
    assert sorted(pages.asked) == sorted(may)

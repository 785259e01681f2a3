"""Feeds: dates by role, ill-formed and wrongly encoded ones, pictures (cases 03, 04, 05, 09)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.core.windows import parse_window
from engine.news.decide import decide
from engine.news.feedread import read_feed
from engine.news.sources.base import outside

CASES = Path(__file__).parents[2] / "data" / "cases"
LATEST = datetime(2026, 3, 30, tzinfo=UTC)
WINDOW = parse_window("2026-03-02..2026-03-08")


def case(name: str) -> bytes:
    return next(CASES.glob(name)).read_bytes()


def test_published_beats_updated_and_the_feeds_own_date_is_nobodys() -> None:
    feed = read_feed(case("03-*/feed.xml"), "https://x.example/atom", latest=LATEST)
    got = {}
    for entry in feed.entries:
        first = next(iter(entry.witnesses), None)
        name = entry.title.split()[0] if entry.title.split()[0].startswith("a") else entry.id[-2:]
        got[name] = (
            first.role if first else None,
            f"{first.value:%Y-%m-%dT%H:%M:%SZ}" if first else None,
            bool(first) and WINDOW.contains(first.value),
        )
    assert got == {
        "a1": ("published", "2026-02-20T08:00:00Z", False),
        "a2": ("modified", "2026-03-05T09:00:00Z", True),
        "a3": (None, None, False),
        "a4": ("published", "2026-03-06T08:00:00Z", True),
        "a5": ("published", "2026-03-07T16:00:00Z", True),
    }
    told = next(entry for entry in feed.entries if entry.witnesses and entry.witnesses[0].role == "modified")
    assert "updated" in told.witnesses[0].note
    # only a1 is dropped unread: what is undated or merely updated is for the page to say
    assert [bool(outside(entry.witnesses, WINDOW)) for entry in feed.entries] == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("file", "titles"),
    [
        ("cut.xml", ["Bridge opens", "Ferry delayed"]),
        ("prefix.xml", ["Bridge opens", "Ferry delayed"]),
        ("amp.xml", ["Bridge & tunnel open", "Ferry delayed"]),
    ],
)
def test_ill_formed_feeds_keep_their_whole_items(file: str, titles: list[str]) -> None:
    feed = read_feed(case(f"04-*/{file}"), "https://harbourpost.example/feed")
    assert feed.problem == ""
    assert [entry.title for entry in feed.entries] == titles
    if file == "amp.xml":
        assert feed.entries[1].url == "https://harbourpost.example/b/2?a=1&b=2"


@pytest.mark.parametrize("file", ["challenge.html", "empty.xml"])
def test_what_is_no_feed_is_a_failure_and_no_quiet_week(file: str) -> None:
    feed = read_feed(case(f"04-*/{file}"), "https://harbourpost.example/feed")
    assert feed.problem
    assert feed.entries == ()


def test_a_feed_without_items_is_a_quiet_week() -> None:
    feed = read_feed(b"<rss version='2.0'><channel><title>x</title></channel></rss>", "https://x.example/feed")
    assert (feed.problem, feed.entries) == ("", ())


@pytest.mark.parametrize(("file", "title"), json.loads(case("05-*/expected.json")).items())
def test_titles_survive_wrong_encodings(file: str, title: str) -> None:
    feed = read_feed(case(f"05-*/{file}"), "https://x.example/feed", headers={"content-type": "text/xml"})
    assert [entry.title for entry in feed.entries] == [title]


def test_pictures_of_items() -> None:
    feed = read_feed(case("09-*/feed.xml"), "https://pict.example/feed")
    got = {entry.title.split()[0]: [claim.url for claim in entry.images] for entry in feed.entries}
    assert got == json.loads(case("09-*/expected.json"))
    assert feed.entries[0].summary == "The mayor at the lock."
    assert feed.entries[0].images[0].caption == "Photo caption, not the story."


def test_one_date_on_many_items_is_the_content_systems() -> None:
    items = "".join(
        f"<item><title>t{n}</title><link>https://x.example/{n}</link>"
        f"<pubDate>Wed, 04 Mar 2026 00:00:00 GMT</pubDate></item>"
        for n in range(5)
    )
    feed = read_feed(f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), "https://x.example/feed")
    assert len(feed.entries) == 5
    assert not any(w.credible for entry in feed.entries for w in entry.witnesses)
    assert decide(feed.entries[0].witnesses).published_at is None

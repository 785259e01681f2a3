"""Source types: Google News, GDELT, sitemaps, archives (cases 06, 07), and the terms they ask for."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.answers import CONFIG, WINDOW, deps, links_of

from engine.core.config import SourceSection
from engine.core.errors import ConfigError
from engine.core.schema import Code, Link, Rejected
from engine.news.decide import place
from engine.news.deps import NewsDeps
from engine.news.extract import extract_page
from engine.news.feedread import read_feed
from engine.news.sources import SourceError, known_types, ready, source_type
from engine.news.sources.gdelt import read_answer
from engine.news.sources.google_news import publisher_url, query_urls, without_tail
from engine.news.terms import DOMAIN_TOPICS, read_most_read, terms_of

CASES = Path(__file__).parents[2] / "data" / "cases"


def case(name: str) -> bytes:
    return next(CASES.glob(name)).read_bytes()


def test_the_built_in_types_are_entry_points_too() -> None:
    assert set(known_types()) >= {"feed", "sitemap", "google_news", "gdelt", "archive"}
    with pytest.raises(ConfigError, match="did you mean 'sitemap'"):
        source_type("sitemaps")


# ---------------------------------------------------------------- Google News


def google(**options: Any) -> SourceSection:
    return SourceSection(name="g", type="google_news", options={"query": "harbour", "every_days": 7, **options})


async def test_google_news_links_are_decoded_or_unresolved_never_passed_on() -> None:
    expected = json.loads(case("06-*/expected.json"))
    found = await links_of(google(), lambda _: case("06-*/feed.xml"))
    links = {item.title: item for item in found if isinstance(item, Link)}
    lost = {item.item: item for item in found if isinstance(item, Rejected)}
    for name, item in expected.items():
        if name == "g3":
            assert item["title"] not in links
        elif item["in_window"] is False:
            assert lost[item["url"]].code is Code.OUTSIDE_WINDOW
        else:
            assert links[item["title"]].url == item["url"]
            assert links[item["title"]].term == "harbour"
    (opaque,) = [item for item in lost.values() if item.code is Code.LINK_UNRESOLVED]
    assert "Ferry strike ends" in opaque.detail
    assert not any("google.com" in link.url or "AU_yq" in link.url for link in links.values())


async def test_an_old_story_with_a_fresh_google_date_is_out_by_its_own_page() -> None:
    found = await links_of(google(), lambda _: case("06-*/feed.xml"))
    link = next(item for item in found if isinstance(item, Link) and "festival" in item.url)
    page = extract_page(case("06-*/g4_page.html"), link.url, others=link.witnesses)
    problem = place(page.decision, WINDOW)
    assert problem is not None
    assert problem[0] is Code.OUTSIDE_WINDOW


def test_tails_and_links_that_are_no_google_links() -> None:
    assert without_tail("A - b - Desk", "Desk") == "A - b"
    assert without_tail("A - yes - or no", "Desk") == "A - yes - or no"
    assert publisher_url("https://x.example/a") == "https://x.example/a"
    for odd in (
        "https://news.google.com/",
        "https://news.google.com/rss/articles/!!!",
        "https://news.google.com/rss/articles/CBMi",
    ):
        assert publisher_url(odd) is None


def test_long_ranges_are_split_into_short_queries() -> None:
    row = SourceSection(name="g", type="google_news", language="de-AT", options={"every_days": 3})
    urls = query_urls(row, WINDOW, "Hafen")
    assert len(urls) == 3
    assert "after%3A2026-03-02+before%3A2026-03-05" in urls[0]
    assert "before%3A2026-03-09" in urls[-1]
    assert "hl=de-AT&gl=AT&ceid=AT%3Ade" in urls[0]
    with pytest.raises(ConfigError):
        query_urls(row, WINDOW, None)
    with pytest.raises(ConfigError):
        query_urls(row.model_copy(update={"options": {"every_days": 0}}), WINDOW, "x")


async def test_a_failing_query_does_not_stop_the_others_and_all_failing_is_a_failure() -> None:
    row = google(query=["good", "bad"])
    found = await links_of(row, lambda url: case("06-*/feed.xml") if "good" in url else Code.FETCH_RATE_LIMITED)
    assert any(isinstance(item, Link) for item in found)
    assert any(isinstance(item, Rejected) and item.code is Code.SOURCE_RATE_LIMITED for item in found)
    with pytest.raises(SourceError):
        await links_of(row, lambda _: Code.FETCH_RATE_LIMITED)


async def test_opaque_links_are_resolved_where_the_user_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def gnewsdecoder(link: str) -> dict[str, Any]:
        asked.append(link)
        return answers.pop(0)

    monkeypatch.setitem(sys.modules, "googlenewsdecoder", SimpleNamespace(gnewsdecoder=gnewsdecoder))
    row = SourceSection(
        name="g", type="google_news", options={"query": "bridge", "every_days": 7, "resolve": "googlenewsdecoder"}
    )
    for answer, url in (
        ({"success": True, "decoded_url": "https://harbourpost.example/ferry"}, "https://harbourpost.example/ferry"),
        ({"status": True, "decoded_url": "https://harbourpost.example/ferry"}, "https://harbourpost.example/ferry"),
        ({"success": False, "message": "no"}, None),
        ({"success": True, "decoded_url": "javascript:void(0)"}, None),
        ({"success": True, "decoded_url": "https://news.google.com/rss/articles/CBMiAU_yq"}, None),
    ):
        answers = [answer]
        found = await links_of(row, lambda _: case("06-*/feed.xml"))
        assert len(asked) == 1
        asked.clear()
        links = [item.url for item in found if isinstance(item, Link)]
        unresolved = [item for item in found if isinstance(item, Rejected) and item.code is Code.LINK_UNRESOLVED]
        assert (url in links, len(unresolved)) == ((True, 0) if url else (False, 1))
    answers = []
    found = await links_of(row, lambda _: case("06-*/feed.xml"))
    assert [item.code for item in found if isinstance(item, Rejected)].count(Code.LINK_UNRESOLVED) == 1
    monkeypatch.setitem(sys.modules, "googlenewsdecoder", None)
    with pytest.raises(ConfigError, match=r"nest-data-engine\[news\]"):
        await links_of(row, lambda _: case("06-*/feed.xml"))


# ---------------------------------------------------------------- GDELT


def test_gdelt_answers_are_told_apart() -> None:
    bad = read_answer(case("07-*/bad_escape.json"))
    assert [item["title"] for item in bad.articles[:2]] == [
        "Mayor's bridge plan",
        "Path C:\\harbour \\docs and a \\x tail",
    ]
    assert str(bad.articles[2]["title"]).startswith("Tab\there and bell")
    assert read_answer(case("07-*/keyword_error.txt")).error == "bad_query"
    assert read_answer(case("07-*/rate_limited.txt")).error == "rate_limited"
    empty = read_answer(case("07-*/empty.json"))
    assert (empty.error, empty.articles) == ("", ())
    full = read_answer(case("07-*/full_250.json"))
    assert len(full.articles) == 250
    assert full.saturated
    assert read_answer(b'{"articles": [').error == "not_json"


def gdelt(**options: Any) -> SourceSection:
    return SourceSection(name="d", type="gdelt", options={"query": "harbour", "wait_s": 0.0, **options})


async def test_a_full_gdelt_list_is_split_until_no_part_is_full() -> None:
    from urllib.parse import parse_qs, urlsplit

    spans: list[tuple[str, str]] = []

    def answer(url: str) -> bytes:
        query = parse_qs(urlsplit(url).query)
        start, end = query["startdatetime"][0], query["enddatetime"][0]
        spans.append((start, end))
        first, last = (datetime.strptime(f"{part}+0000", "%Y%m%d%H%M%S%z") for part in (start, end))
        hours = (last - first).total_seconds() / 3600
        count = 250 if hours > 50 else 3
        items = [
            {"url": f"https://x.example/{start}/{n}", "title": "t", "seendate": "20260304T101500Z"}
            for n in range(count)
        ]
        return json.dumps({"articles": items}).encode()

    found = await links_of(gdelt(), answer)
    parts = [span for span in spans if span[0] in {link.url.split("/")[3] for link in found if isinstance(link, Link)}]
    assert len([item for item in found if isinstance(item, Link)]) == 3 * 4
    assert min(part[0] for part in parts) == "20260302000000"
    assert max(part[1] for part in parts) == "20260308235959"
    link = next(item for item in found if isinstance(item, Link))
    assert link.witnesses[0].kind == "api"
    assert link.witnesses[0].value == datetime(2026, 3, 4, 10, 15, tzinfo=UTC)
    assert link.witnesses[0].note == "weak"


async def test_gdelt_errors_are_no_quiet_week() -> None:
    for file, code in (("keyword_error.txt", Code.SOURCE_BAD_QUERY), ("rate_limited.txt", Code.SOURCE_RATE_LIMITED)):
        chosen, fetcher = deps(lambda _, file=file: case(f"07-*/{file}"))  # type: ignore[misc]
        with pytest.raises(SourceError) as caught:
            await source_type("gdelt").links(WINDOW, gdelt(), CONFIG, deps=chosen)
        assert caught.value.code is code
        assert len(fetcher.asked) == (1 if code is Code.SOURCE_BAD_QUERY else 3)


async def test_gdelt_is_asked_again_after_five_seconds_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("engine.news.sources.gdelt.asyncio.sleep", sleep)
    answers = [case("07-*/rate_limited.txt"), case("07-*/rate_limited.txt"), case("07-*/bad_escape.json")]
    row = SourceSection(name="d", type="gdelt", options={"query": "harbour"})
    found = await links_of(row, lambda _: answers.pop(0))
    assert len([item for item in found if isinstance(item, Link)]) == 3
    assert waited[:2] == [5.0, 10.0]


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("kind", "options", "word"),
    [
        ("sitemap", {"max_map": 3}, "did you mean 'max_maps'"),
        ("sitemap", {"max_maps": 0}, "at least 1"),
        ("sitemap", {"max_maps": True}, "at least 1"),
        ("sitemap", {"undated": "maybe"}, "'keep' or 'drop'"),
        ("feed", {"query": "x"}, "has none"),
        ("gdelt", {"query": 3}, "a text or a list of texts"),
        ("gdelt", {"query": ""}, "a text or a list of texts"),
        ("gdelt", {"query": "x", "wait_s": "long"}, "seconds"),
        ("gdelt", {"terms": ["domains", "astrology"]}, "astrology"),
        ("google_news", {"query": "x", "every_days": 1.5}, "at least 1"),
        ("google_news", {"query": "x", "resolve": "magic"}, "googlenewsdecoder"),
        ("archive", {"hosts": [1]}, "a text or a list of texts"),
        ("archive", {"lag_days": -1}, "0 or more"),
        ("nowhere", {}, "unknown source type"),
    ],
)
def test_options_that_cannot_be_are_told(kind: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        ready(SourceSection(name="s", type=kind, options=options))


def test_options_that_fit() -> None:
    for kind, options in (
        ("sitemap", {"max_maps": 9, "undated": "keep"}),
        ("gdelt", {"query": ["a", "b"], "wait_s": 0, "language": "english"}),
        ("google_news", {"terms": ["domains", "trends"], "every_days": 2, "region": "GB"}),
        ("archive", {"hosts": "x.example", "lag_days": 0}),
    ):
        ready(SourceSection(name="s", type=kind, options=options))


# ---------------------------------------------------------------- terms


async def test_terms_come_from_lists_topics_trends_and_most_read_pages() -> None:
    row = SourceSection(name="t", options={"terms": ["trends", "wikipedia", "domains"]})
    trends = b"<rss version='2.0'><channel><item><title>tidal bridge</title><link>https://t.example/1</link></item></channel></rss>"
    views = {
        "items": [
            {"articles": [{"article": "Main_Page"}, {"article": "Eileen_Collins"}, {"article": "Special:Search"}]}
        ]
    }

    def answer(url: str) -> bytes:
        return trends if "trends" in url else json.dumps(views).encode()

    chosen, fetcher = deps(answer)
    terms = await terms_of(row, WINDOW, deps=chosen)
    assert terms[:2] == ["tidal bridge", "Eileen Collins"]
    assert terms[2:] == list(DOMAIN_TOPICS)
    assert len(fetcher.asked) == 1 + 7
    assert await terms_of(SourceSection(name="t", options={"query": ["a", "b", "a"]}), WINDOW, deps=chosen) == [
        "a",
        "b",
    ]
    assert await terms_of(SourceSection(name="t"), WINDOW, deps=chosen) == [None]
    with pytest.raises(ConfigError):
        await terms_of(SourceSection(name="t", options={"terms": "astrology"}), WINDOW, deps=chosen)
    with pytest.raises(SourceError):
        read_most_read(b'{"items": []}')


async def spoken_of(row: SourceSection, window: Any, *, deps: NewsDeps) -> list[str]:
    return [f"ferry strike of {window.first}", " "]


async def test_terms_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    monkeypatch.setitem(sys.modules, "a_terms_plugin", SimpleNamespace(spoken_of=spoken_of))
    points = [
        EntryPoint("spoken", "a_terms_plugin:spoken_of", "nest.terms"),
        EntryPoint("gone", "a_terms_plugin:gone", "nest.terms"),
    ]
    monkeypatch.setattr("engine.news.terms.entry_points", lambda group: points)
    row = SourceSection(name="g", type="gdelt", options={"terms": ["spoken", "domains"]})
    ready(row)
    terms = await terms_of(row, WINDOW, deps=deps(lambda _: b"")[0])
    assert terms[:2] == ["ferry strike of 2026-03-02", DOMAIN_TOPICS[0]]
    with pytest.raises(ConfigError, match="cannot be loaded"):
        await terms_of(SourceSection(name="g", options={"terms": "gone"}), WINDOW, deps=deps(lambda _: b"")[0])


def test_google_feed_titles_come_with_their_source() -> None:
    feed = read_feed(case("06-*/feed.xml"), "https://news.google.com/rss/search")
    assert [entry.publisher for entry in feed.entries][:2] == ["Harbour Post", "Northvale Courier"]

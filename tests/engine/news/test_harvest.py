"""Remembering what feeds show: rounds, first seen, gaps and health, and reading it back in `find`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.loopback import Site
from support.newsroom import Item, Publisher, collect_config, photo

from engine.core.config import SourceSection
from engine.core.schema import Link, Rejected
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.deps import NewsDeps
from engine.news.find import find
from engine.news.harvest import Harvested, harvest
from engine.news.rounds import gaps, health
from engine.web.client import WebClient

HOST = "harbour.example"
SOURCES = [SourceSection(name="harbour", type="feed", url=f"http://{HOST}/feed.xml")]
WINDOW = parse_window("2026-03-02..2026-03-08")


def items(*days: int) -> list[Item]:
    return [Item(f"/n/{day}", f"2026-03-0{day}T09:00:00Z", images=[("/i/a.jpg", "The mayor")]) for day in days]


def at(day: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


async def round_of(site: Site, home: Path, now: datetime, *, fetch_pages: bool = True) -> tuple[int, int, str]:
    config = collect_config(site.netloc, HOST)
    async with WebClient(config, cache=home / "http") as fetcher:
        deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(home / "blobs"))
        report = await harvest(SOURCES, config, deps=deps, store=home / "harvest", now=now, fetch_pages=fetch_pages)
    return report.sources[0].shown, report.new, report.sources[0].failure


async def test_what_the_feed_forgot_is_found_through_the_harvest(tmp_path: Path) -> None:
    seen = [*items(3), Item("/n/2", "2026-03-02T09:00:00Z", images=[("/i/2.jpg", "The mayor")])]
    async with Site(Publisher(HOST, seen, {"/i/a.jpg": photo(1), "/i/2.jpg": photo(2)}).routes()) as site:
        assert await round_of(site, tmp_path, at(3)) == (2, 2, "")
        assert await round_of(site, tmp_path, at(3, 18)) == (2, 0, "")
        site.routes = dict(Publisher(HOST, items(3, 4, 5), {"/i/a.jpg": photo(1)}).routes())
        assert await round_of(site, tmp_path, at(5)) == (3, 2, "")
        asked = site.paths().count("/n/2")
        config = collect_config(site.netloc, HOST)
        async with WebClient(config, cache=tmp_path / "http") as fetcher:
            memory = Harvested(tmp_path / "harvest")
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path / "blobs"), memory=memory)
            found = await find(WINDOW, SOURCES, config, deps=deps)
            links = {link.url.rsplit("/", 1)[1]: link for link in found if isinstance(link, Link)}
            # the page is gone from the feed and served from the cache of the round that saw it
            assert (await fetcher.fetch(f"http://{HOST}/n/2", kind="page")).from_cache
            assert (await fetcher.fetch(f"http://{HOST}/i/2.jpg", kind="image")).from_cache
        assert site.paths().count("/n/2") == asked == 1
    assert sorted(links) == ["2", "3", "4", "5"]
    assert links["2"].first_seen == at(3)
    assert links["3"].first_seen == at(3)
    assert links["5"].first_seen == at(5)
    assert not [item for item in found if isinstance(item, Rejected)]


async def test_a_failing_source_is_told_and_the_round_goes_on(tmp_path: Path) -> None:
    async with Site({}) as site:
        shown, new, failure = await round_of(site, tmp_path, at(3))
    assert (shown, new) == (0, 0)
    assert failure.startswith("source_unreachable: fetch_gone")


async def test_a_cut_line_is_passed_over_and_nothing_is_glued_to_it(tmp_path: Path) -> None:
    async with Site(Publisher(HOST, items(2, 3), {}).routes()) as site:
        await round_of(site, tmp_path, at(3), fetch_pages=False)
        (file,) = (tmp_path / "harvest" / "harbour").iterdir()
        file.write_bytes(file.read_bytes()[:-20])
        assert [link.url for link in Harvested(tmp_path / "harvest").of("harbour", WINDOW)] == [f"http://{HOST}/n/2"]
        assert await round_of(site, tmp_path, at(3, 15), fetch_pages=False) == (2, 1, "")
    assert len(list(Harvested(tmp_path / "harvest").of("harbour", WINDOW))) == 2


async def test_windows_see_only_their_own_links(tmp_path: Path) -> None:
    async with Site(Publisher(HOST, items(2, 3), {}).routes()) as site:
        await round_of(site, tmp_path, at(3), fetch_pages=False)
    memory = Harvested(tmp_path / "harvest")
    assert len(memory.links(WINDOW, ["harbour"])) == 2
    assert memory.links(WINDOW, ["other"]) == []
    assert memory.links(parse_window("2026-03-09..2026-03-15"), ["harbour"]) == []
    assert memory.links(parse_window("2026-02-16..2026-02-22"), ["harbour"]) == []


def write_rounds(store: Path, counts: list[tuple[datetime, int, int]]) -> None:
    import json

    store.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"at": when.isoformat(), "sources": [["harbour", shown, new, ""]]}) for when, shown, new in counts
    ]
    (store / "rounds.jsonl").write_text("\n".join(lines) + "\n{cut", encoding="utf-8")


def test_health_is_green_amber_red_or_grey(tmp_path: Path) -> None:
    start = at(1, 6)
    usual = [(start + timedelta(days=n), 20, 60 if n == 0 else 10) for n in range(8)]
    now = start + timedelta(days=8)
    for name, rounds, state in (
        ("green", [*usual, (now, 20, 9)], "green"),
        ("amber", [*usual[:-1], (start + timedelta(days=7), 20, 2), (now, 20, 2)], "amber"),
        ("red", [*usual, (now - timedelta(hours=6), 0, 0), (now, 0, 0)], "red"),
        ("grey", usual[:1], "grey"),
    ):
        write_rounds(tmp_path / name, rounds)
        (found,) = health(tmp_path / name, ["harbour"], now=now)
        assert found.state == state, found
    assert health(tmp_path / "none", ["harbour"], now=now)[0].state == "grey"


def test_gaps_between_rounds_are_told(tmp_path: Path) -> None:
    write_rounds(tmp_path, [(at(2, hour), 1, 0) for hour in (0, 6, 23)])
    found = gaps(tmp_path, since=at(2, 0), until=at(3, 6))
    assert found == [(at(2, 6), at(2, 23))]

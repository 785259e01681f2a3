"""`nest sources`: every row is tried and no bad one stops the others; the harvest's health; losses per publisher."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.loopback import Reply, Site
from support.newsroom import Item, Publisher, photo, rss

from engine.core.config import load_config
from engine.core.store import Home
from flows.report import publisher_counts, publisher_table
from flows.run import run_for
from flows.stages import collect
from flows.stages.sources import check_sources
from flows.status.sources import health_of

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
HOSTS = ("harbour.example", "closed.example", "reserved.example", "slow.example", "gone.example")


def settings(netloc: str, home: Path, rows: list[dict[str, Any]]) -> Any:
    return load_config(
        None,
        environ={},
        overrides={
            "home": str(home),
            "source": rows,
            "collect": {
                "resolve": dict.fromkeys(HOSTS, netloc),
                "allow_hosts": list(HOSTS),
                "per_host_delay_s": 0.0,
                "retries": 0,
                "timeout_s": 5.0,
            },
        },
    )


def items(count: int = 6) -> list[Item]:
    return [Item(f"/n/{n}", f"2026-03-0{n + 2}T09:00:00Z") for n in range(count)]


async def test_every_row_is_tried_and_no_bad_one_stops_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_pictures = rss("harbour.example", items()).replace(
        b"</item>", b'<enclosure url="http://harbour.example/i/1.jpg" type="image/jpeg" length="1"/></item>', 3
    )
    routes = {
        "harbour.example/feed.xml": Reply(with_pictures),
        "closed.example/feed.xml": Reply(rss("closed.example", items(2))),
        "closed.example/robots.txt": Reply(b"User-agent: *\nAllow: /feed.xml\nDisallow: /\n"),
        "reserved.example/feed.xml": Reply(rss("reserved.example", items(2))),
        "reserved.example/.well-known/tdmrep.json": Reply(b'[{"location": "/", "tdm-reservation": 1}]'),
        "slow.example/feed.xml": Reply(rss("slow.example", items(2))),
        "slow.example/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 0.2\n"),
        "gone.example/feed.xml": Reply(b"<html><p>we moved</p></html>"),
    }  # fmt: skip
    rows: list[dict[str, Any]] = [
        {"name": "gone", "url": "http://gone.example/feed.xml"},
        {"name": "nowhere", "url": "http://gone.example/nothing.xml"},
        {"name": "no query", "type": "gdelt"},
        {"name": "no such type", "type": "feeed"},
        {"name": "no url"},
        {"name": "paused", "url": "http://gone.example/feed.xml", "paused": True},
        {"name": "breaks", "type": "breaks"},
        {"name": "no archive", "type": "archive", "url": str(tmp_path / "none.warc")},
        {"name": "harbour", "url": "http://harbour.example/feed.xml"},
        {"name": "closed", "url": "http://closed.example/feed.xml"},
        {"name": "reserved", "url": "http://reserved.example/feed.xml"},
        {"name": "slow", "url": "http://slow.example/feed.xml"},
    ]  # fmt: skip

    class Breaks:
        async def links(self, *_: object, **__: object) -> list[object]:
            raise RuntimeError("a plugin's own fault")

    from engine.news.sources import registry

    monkeypatch.setattr(registry, "_table", lambda: {**registry.BUILT_IN, "breaks": "test:Breaks"})
    loaded = registry.import_module
    plugin = SimpleNamespace(Breaks=Breaks)
    monkeypatch.setattr(registry, "import_module", lambda name: plugin if name == "test" else loaded(name))
    async with Site(routes) as site:
        found = {s.name: s for s in await check_sources(settings(site.netloc, tmp_path, rows), now=NOW)}
    assert [found[str(row["name"])].state for row in rows[:8]] == ["bad"] * 5 + ["paused", "bad", "bad"]
    for name, word in (
        ("gone", "source_not_a_feed"),
        ("nowhere", "fetch_gone"),
        ("no query", "options.query"),
        ("no such type", "did you mean 'feed'"),
        ("no url", "no url"),
        ("breaks", "a plugin's own fault"),
        ("no archive", "cannot be read"),
    ):
        assert word in found[name].detail
    good = found["harbour"]
    assert (good.state, good.items, good.oldest, good.robots) == ("good", 6, "2026-03-02", "allowed")
    assert (good.per_day, good.pictured, good.captioned) == (0.8, 0.5, 0.0)
    assert (found["closed"].state, found["closed"].robots) == ("bad", "robots_disallowed: robots.txt disallows it")
    assert (found["reserved"].state, found["reserved"].robots) == ("bad", "ai_opt_out: tdmrep.json: reserved")
    assert (found["slow"].state, found["slow"].robots) == ("good", "allowed, crawl-delay 0.2 s")


async def test_pages_are_looked_at_where_the_feed_does_not_tell(tmp_path: Path) -> None:
    """Most feeds name no pictures although every page has one with a caption."""
    figure = b'<figure><img src="/i/1.jpg" width="800" height="600"><figcaption>The mayor</figcaption></figure>'
    pages = {
        f"harbour.example/n/{n}": Reply(b"<html><body><article><h1>News</h1>%s</article></body></html>" % body)
        for n, body in ((5, figure), (4, figure), (3, b"<p>words</p>"))
    }
    routes = {"harbour.example/feed.xml": Reply(rss("harbour.example", items())), **pages}
    rows = [{"name": "harbour", "url": "http://harbour.example/feed.xml"}]
    async with Site(routes) as site:
        (state,) = await check_sources(settings(site.netloc, tmp_path, rows), now=NOW)
        assert sorted(one.target for one in site.seen if one.target.startswith("/n/")) == ["/n/3", "/n/4", "/n/5"]
    assert (state.state, state.pages, state.pictured, state.captioned) == ("good", 3, 0.67, 0.67)


def test_health_tells_states_and_gaps_of_the_harvest(tmp_path: Path) -> None:
    config = settings(
        "127.0.0.1:1", tmp_path, [{"name": "harbour"}, {"name": "ferry"}, {"name": "off", "paused": True}]
    )
    store = tmp_path / "harvest"
    empty = health_of(tmp_path, config.source, now=NOW)
    assert [one.state for one in empty.sources] == ["grey", "grey"]
    assert (empty.gaps, empty.last_round) == ((), None)
    moments = [NOW - timedelta(hours=h) for h in (60, 54, 30, 24, 6, 0)]
    lines = [
        json.dumps(
            {"at": at.isoformat(), "sources": [["harbour", 20, 5, ""], ["ferry", 0, 0, "source_unreachable: x"]]}
        )
        for at in moments
    ]
    store.mkdir(parents=True)
    (store / "rounds.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = health_of(tmp_path, config.source, now=NOW)
    assert [(one.source, one.state) for one in found.sources] == [("harbour", "green"), ("ferry", "red")]
    assert "source_unreachable" in found.sources[1].detail
    assert found.gaps == ((moments[1], moments[2]), (moments[3], moments[4]))
    assert found.last_round == NOW


def test_the_list_shows_dark_sources_and_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.commands.look import sources

    file = tmp_path / "nest.toml"
    file.write_text(f'home = "{tmp_path}/home"\n[[source]]\nname = "ferry"\nurl = "https://ferry.example/feed"\n')
    harvest = Home(tmp_path / "home").harvest
    harvest.mkdir(parents=True)
    now = datetime.now(UTC)
    lines = [
        json.dumps({"at": (now - timedelta(hours=h)).isoformat(), "sources": [["ferry", 0, 0, ""]]}) for h in (30, 6, 0)
    ]
    (harvest / "rounds.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sources("list", file, as_json=False)
    told = capsys.readouterr().out
    assert "red: empty in the last two rounds" in told
    assert "(24 hours)" in told
    sources("list", file, as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["harvest"]["state"] == "red"


async def test_losses_are_counted_per_publisher(tmp_path: Path) -> None:
    good = Publisher(
        "harbour.example",
        [
            Item("/n/1", "2026-03-03T09:00:00Z", images=[("/i/1.jpg", "The mayor")]),
            Item("/n/2", "2026-03-04T09:00:00Z"),
        ],
        {"/i/1.jpg": photo(1)},
    )
    bad = Publisher("slow.example", [Item(f"/n/{n}", "2026-03-04T09:00:00Z") for n in range(3)])
    routes = {**good.routes(), **bad.routes(), "slow.example/n/0": Reply(b"", 403), "slow.example/n/1": Reply(b"", 403)}
    rows = [{"name": host, "url": f"http://{host}.example/feed.xml"} for host in ("harbour", "slow")]
    async with Site(routes) as site:
        config = settings(site.netloc, tmp_path, rows)
        run = run_for(config, "2026-03-02..2026-03-08")
        assert publisher_counts(run) == []
        from flows.stages.collect import _collect

        await _collect(run, collect.place(run))
    found = {one["name"]: one for one in publisher_counts(run)}
    assert found["slow.example"]["lost"] == {"fetch_forbidden": 2, "no_image": 1}
    assert (found["harbour.example"]["articles"], found["harbour.example"]["photos"]) == (1, 1)
    assert found["harbour.example"]["lost"] == {"no_image": 1}
    first, *others = publisher_table(run).splitlines()[2:]
    assert first.startswith("slow.example")
    assert "2 fetch_forbidden, 1 no_image" in first
    assert len(others) == 1

"""Collecting over real HTTP on loopback: find, run, reduce; every loss has its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.loopback import Reply, Site
from support.newsroom import Item, Publisher, collect_config, photo, story

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError, TransientError
from engine.core.images import open_image
from engine.core.schema import Article, Code, Link, Rejected
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.collect import reduce, run
from engine.news.deps import NewsDeps
from engine.news.find import find
from engine.news.photos import perceptual_hash
from engine.web.client import WebClient

WINDOW = parse_window("2026-03-02..2026-03-08")
HOST = "harbour.example"
CAPTION = "Mayor Ilse Brandvik on the bridge. Photo: A. Reed"


def feed(host: str = HOST, name: str = "harbour") -> SourceSection:
    return SourceSection(name=name, type="feed", url=f"http://{host}/feed.xml")


async def collect(
    site: Site,
    sources: list[SourceSection],
    blobs: Path,
    *hosts: str,
    window: str = "2026-03-02..2026-03-08",
    cache: Path | None = None,
    offline: bool = False,
    config: CollectSection | None = None,
) -> list[Article | Rejected]:
    config = config or collect_config(site.netloc, *(hosts or (HOST,)))
    chosen = parse_window(window)
    async with WebClient(config, cache=cache, offline=offline) as fetcher:
        deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(blobs))
        found = await find(chosen, sources, config, deps=deps)
        links = [item for item in found if isinstance(item, Link)]
        lost = [item for item in found if isinstance(item, Rejected)]
        items = await run(links, config, window=chosen, deps=deps)
        done = reduce([item for item in items if isinstance(item, Article)], config)
        return [*done, *(item for item in items if isinstance(item, Rejected)), *lost]


def articles(items: list[Article | Rejected]) -> list[Article]:
    return [item for item in items if isinstance(item, Article)]


def codes(items: list[Article | Rejected]) -> dict[str, Code]:
    return {item.item.rsplit("/", 1)[-1]: item.code for item in items if isinstance(item, Rejected)}


async def test_one_good_story_becomes_an_article_with_its_photo(tmp_path: Path) -> None:
    item = Item("/n/bridge", "2026-03-04T09:00:00+01:00", images=[("/i/a.jpg", CAPTION)])
    publisher = Publisher(HOST, [item], {"/i/a.jpg": photo(1)})
    async with Site(publisher.routes()) as site:
        items = await collect(site, [feed()], tmp_path)
    (article,) = articles(items)
    assert len(items) == 1
    assert article.title == "News of n bridge"
    assert article.publisher == "Harbour Post"
    assert article.published_at is not None
    assert article.published_at.isoformat() == "2026-03-04T08:00:00+00:00"
    assert article.date_certain
    assert {w.kind for w in article.date_witnesses} >= {"jsonld", "meta", "feed"}
    (image,) = article.images
    assert (image.width, image.height, image.caption, image.credit) == (480, 320, CAPTION, "A. Reed")
    assert BlobStore(tmp_path).get(image.sha256, image.ext) == photo(1)
    assert len(image.phash) == 16
    assert "Okafor" in article.text


async def test_every_loss_has_its_code(tmp_path: Path) -> None:
    day = "2026-03-04T09:00:00Z"
    one = [("/i/a.jpg", CAPTION)]
    items = [
        Item("/n/old", "2026-02-20T09:00:00Z", images=one),
        Item("/n/refreshed", "2026-01-02T09:00:00Z", images=one, feed_date=day),
        Item("/n/undated", "", images=one, feed_date=""),
        Item("/n/gone", day, images=one),
        Item("/n/short", day, images=one, body="<p>Too short.</p>"),
        Item("/n/nopicture", day),
        Item("/n/logo", day, images=[("/static/logo.png", "The logo of the house")]),
        Item("/n/cut", day, images=[("/i/cut.jpg", CAPTION)]),
        Item("/n/small", day, images=[("/i/small.jpg", CAPTION)]),
        Item("/n/flat", day, images=[("/i/flat.png", CAPTION)]),
        Item("/n/html", day, images=[("/i/html.jpg", CAPTION)]),
        Item("/n/mute", day, images=[("/i/a.jpg", "")]),
        Item(
            "/n/paywall",
            day,
            images=one,
            body="<p>The bridge opened on Wednesday, and the mayor said that she was glad. She spoke for long, beside "
            "the engineer who had led the works through nine years of weather and two court cases.</p><p>Subscribe to "
            "continue reading this article and support the work of our newsroom in the harbour.</p>",
        ),
        Item("/n/live-blog/1", day, images=one),
        Item("/n/noai", day, images=one, head='<meta name="robots" content="noai, noimageai">'),
    ]
    import io

    from PIL import Image as PilImage

    flat = io.BytesIO()
    PilImage.new("RGB", (400, 300), (200, 10, 10)).save(flat, "PNG")
    photos = {
        "/i/a.jpg": photo(1),
        "/i/cut.jpg": photo(2)[:9000],
        "/i/small.jpg": photo(3, width=120, height=90),
        "/i/flat.png": flat.getvalue(),
        "/i/html.jpg": b"<html>not here</html>",
        "/static/logo.png": photo(4),
    }
    routes = Publisher(HOST, items, photos).routes()
    routes[f"{HOST}/n/gone"] = Reply(status=410)
    async with Site(routes) as site:
        found = await collect(site, [feed()], tmp_path)
    assert articles(found) == []
    assert codes(found) == {
        "old": Code.OUTSIDE_WINDOW,
        "refreshed": Code.OUTSIDE_WINDOW,
        "undated": Code.NO_DATE,
        "gone": Code.FETCH_GONE,
        "short": Code.NO_TEXT,
        "nopicture": Code.NO_IMAGE,
        "logo": Code.NO_IMAGE,
        "cut": Code.NO_IMAGE,
        "cut.jpg": Code.IMAGE_TRUNCATED,
        "small": Code.NO_IMAGE,
        "small.jpg": Code.IMAGE_TOO_SMALL,
        "flat": Code.NO_IMAGE,
        "flat.png": Code.IMAGE_FLAT,
        "html": Code.NO_IMAGE,
        "html.jpg": Code.IMAGE_NOT_AN_IMAGE,
        "mute": Code.NO_IMAGE,
        "a.jpg": Code.NO_CAPTION,
        "paywall": Code.PAYWALL,
        "1": Code.LIVE_BLOG,
        "noai": Code.AI_OPT_OUT,
    }


async def test_one_bad_source_stops_no_other(tmp_path: Path) -> None:
    item = Item("/n/bridge", "2026-03-04T09:00:00+01:00", images=[("/i/a.jpg", CAPTION)])
    routes = Publisher(HOST, [item], {"/i/a.jpg": photo(1)}).routes()
    routes["html.example/feed.xml"] = Reply(b"<html><body>Checking your browser</body></html>")
    routes["empty.example/feed.xml"] = Reply(b"")
    routes["error.example/feed.xml"] = Reply(status=500)
    hosts = (HOST, "html.example", "empty.example", "error.example")
    sources = [feed(host, host.split(".")[0]) for host in hosts]
    async with Site(routes) as site:
        found = await collect(site, sources, tmp_path, *hosts)
    assert len(articles(found)) == 1
    assert {item.source: item.code for item in found if isinstance(item, Rejected)} == {
        "html": Code.SOURCE_NOT_A_FEED,
        "empty": Code.SOURCE_NOT_A_FEED,
        "error": Code.SOURCE_UNREACHABLE,
    }


async def test_no_source_at_all_is_no_quiet_week(tmp_path: Path) -> None:
    async with Site({}) as site:
        with pytest.raises(TransientError, match="none of the 1 sources"):
            await collect(site, [feed()], tmp_path)
        with pytest.raises(ConfigError, match="no \\[\\[source\\]\\]"):
            await collect(site, [], tmp_path)
        with pytest.raises(ConfigError, match="did you mean 'feed'"):
            await collect(site, [SourceSection(name="x", type="feeed", url="http://x/")], tmp_path)


async def test_the_same_story_on_two_sites_stays_once(tmp_path: Path) -> None:
    early = Item("/n/one", "2026-03-04T09:00:00Z", images=[("/i/a.jpg", CAPTION)], body=story("agency"))
    late = Item(
        "/x/two",
        "2026-03-04T12:00:00Z",
        images=[("/i/b.jpg", CAPTION)],
        body=story("agency") + "<p>Reporting by the desk.</p>",
    )
    other = Item("/x/three", "2026-03-05T12:00:00Z", images=[("/i/b.jpg", CAPTION)])
    routes = Publisher(HOST, [early], {"/i/a.jpg": photo(1)}).routes()
    routes |= Publisher("second.example", [late, other], {"/i/b.jpg": photo(2)}).routes()
    async with Site(routes) as site:
        found = await collect(site, [feed(), feed("second.example", "second")], tmp_path, HOST, "second.example")
    assert sorted(article.url for article in articles(found)) == [
        f"http://{HOST}/n/one",
        "http://second.example/x/three",
    ]
    assert codes(found) == {"two": Code.DUPLICATE_STORY}


async def test_a_week_from_the_cache_gives_the_same_bytes_without_a_network(tmp_path: Path) -> None:
    items = [
        Item(f"/n/{n}", f"2026-03-0{n}T09:00:00Z", images=[(f"/i/{n}.jpg", f"The mayor, day {n}")]) for n in range(2, 9)
    ]
    routes = Publisher(HOST, items, {f"/i/{n}.jpg": photo(n) for n in range(2, 8)}).routes()
    async with Site(routes) as site:
        online = await collect(site, [feed()], tmp_path / "a", cache=tmp_path / "http")
        asked = len(site.seen)
        assert asked > 10
    offline = await collect(site, [feed()], tmp_path / "b", cache=tmp_path / "http", offline=True)
    assert [item.line() for item in offline] == [item.line() for item in online]
    assert len(articles(online)) == 6
    assert codes(online)["8.jpg"] is Code.FETCH_GONE
    blobs = {path.name: path.read_bytes() for path in (tmp_path / "a").rglob("*.*")}
    assert blobs == {path.name: path.read_bytes() for path in (tmp_path / "b").rglob("*.*")}


async def test_a_photo_of_an_earlier_snapshot_is_archive_material(tmp_path: Path) -> None:
    items = [
        Item(f"/n/{n}", "2026-03-04T09:00:00Z", images=[(f"/i/{n}.jpg", f"The mayor, picture {n}")]) for n in (1, 2)
    ]
    known = perceptual_hash(open_image(photo(1)).pixels)
    # a few bits apart, as the same photo in another size
    other_size = f"{int(known, 16) ^ 0b1010001:016x}"
    async with Site(Publisher(HOST, items, {f"/i/{n}.jpg": photo(n) for n in (1, 2)}).routes()) as site:
        config = collect_config(site.netloc, HOST)
        async with WebClient(config, cache=None) as fetcher:
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path), known_photos=("f0f0ff00ff00f0f0", other_size))
            links = [item for item in await find(WINDOW, [feed()], config, deps=deps) if isinstance(item, Link)]
            found = articles(await run(links, config, window=WINDOW, deps=deps))
    assert {article.url[-1]: article.images[0].archive_material for article in found} == {"1": True, "2": False}


async def test_two_halves_are_one_piece(tmp_path: Path) -> None:
    agency = story("agency") + story("agency two")
    longer = story("agency") + story("agency three") + story("agency four")
    zones = ["+00:00", "-08:00", "+09:00", "+01:00", "-05:00"]
    items = [
        Item(
            f"/2026/03/0{day}/{hour:02d}{index}",
            f"2026-03-0{day}T{hour:02d}:30:00{zones[(day + index) % 5]}",
            images=[(f"/i/{day}.jpg", f"The mayor, day {day}")],
            # one agency's report in both halves, and one that goes on
            body={(3, 1): agency, (6, 1): agency, (4, 1): longer}.get((day, index), ""),
        )
        for day in range(1, 10)
        for index, hour in enumerate((0, 12, 23))
    ]
    routes = Publisher(HOST, items, {f"/i/{day}.jpg": photo(day) for day in range(1, 10)}).routes()
    async with Site(routes) as site:
        halves = [
            await collect(site, [feed()], tmp_path, window=window)
            for window in ("2026-03-02..2026-03-04", "2026-03-05..2026-03-08")
        ]
        whole = await collect(site, [feed()], tmp_path)
    one = {article.id: article for article in articles(whole)}
    # all that the halves have and the whole has not is what repeats the earlier half
    early, late = ({article.id: article.url for article in articles(half)} for half in halves)
    assert {url for name, url in {**early, **late}.items() if name not in one} == {f"http://{HOST}/2026/03/06/121"}
    assert one.keys() <= early.keys() | late.keys()
    # what two publishers tell in both halves is known only together: the halves are reduced once more
    merged = reduce([article for half in halves for article in articles(half)], collect_config("", HOST))
    assert {article.id: article for article in articles(merged)} == one
    assert [article.line() for article in articles(merged)] == [article.line() for article in articles(whole)]
    assert len(one) >= 18
    assert len({article.story for article in one.values()}) < len(one)
    assert all(WINDOW.contains(article.published_at) for article in one.values() if article.published_at)


async def test_limit_leaves_out_the_rest_and_says_so(tmp_path: Path) -> None:
    items = [Item(f"/n/{n}", "2026-03-04T09:00:00Z", images=[("/i/a.jpg", CAPTION)]) for n in range(4)]
    async with Site(Publisher(HOST, items, {"/i/a.jpg": photo(1)}).routes()) as site:
        found = await collect(site, [feed()], tmp_path, config=collect_config(site.netloc, HOST, limit=2))
    assert len(articles(found)) == 2
    assert list(codes(found).values()) == [Code.LIMIT] * 2

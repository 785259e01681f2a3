# ruff: noqa: E501
"""Faults that others' readers had, each with an input of our making and its right value.

The kinds that have stored inputs are tested where their modules are (dates, feeds, pages, pictures, sources, fetching);
here are the others, and what holds across modules.
"""

from __future__ import annotations

import gzip
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.loopback import Reply, Site
from support.newsroom import Item, Publisher, collect_config, page, photo, rss, story

from engine.core.config import SourceSection
from engine.core.schema import Article, Code, Link, Rejected
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.collect import reduce, run
from engine.news.deps import NewsDeps
from engine.news.extract import extract_page
from engine.news.feedread import read_feed
from engine.news.find import find
from engine.news.photos import perceptual_hash
from engine.news.sources.google_news import query_urls
from engine.web.client import WebClient

NOW = datetime(2026, 3, 30, tzinfo=UTC)
URL = "https://northvale.example/n/bridge"
WINDOW = parse_window("2026-03-02..2026-03-08")


def html(head: str, body: str = "", *, lang: str = "en") -> bytes:
    text = body or story("bridge")
    return f'<html lang="{lang}"><head>{head}</head><body><article><h1>Bridge opens</h1>{text}</article></body></html>'.encode()


def test_a_fault_inside_the_parser_is_the_feeds_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    import feedparser

    def gives_up(*_: object, **__: object) -> object:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr(feedparser, "parse", gives_up)
    found = read_feed(rss("northvale.example", [Item("/n/1", "2026-03-04T09:00:00Z")]), URL)
    assert (found.entries, found.problem) == ((), "the parser gave up: UnicodeDecodeError")


def test_a_feed_with_one_bad_byte_keeps_its_items() -> None:
    body = rss("northvale.example", [Item(f"/n/{n}", "2026-03-04T09:00:00Z", title=f"Ferry {n}") for n in range(3)])
    found = read_feed(body.replace(b"Ferry 1", b"Ferry \xff1"), "https://northvale.example/feed")
    assert [entry.url.rsplit("/", 1)[-1] for entry in found.entries] == ["0", "1", "2"]
    assert not found.problem


def test_a_charset_remark_is_no_reason_to_throw_a_feed_away() -> None:
    body = rss("northvale.example", [Item("/n/1", "2026-03-04T09:00:00Z", title="K\u0131ymal\u0131 lahmacun")])
    found = read_feed(body, "https://northvale.example/feed", headers={"content-type": "text/html; charset=iso-8859-9"})
    assert found.entries[0].title.endswith("lahmacun")
    assert not found.problem


def test_a_text_only_media_content_does_not_hide_the_picture_of_the_summary() -> None:
    body = (
        '<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>x</title><item><title>Ferry</title>'
        '<link>https://northvale.example/n/1</link><media:content medium="document" url="https://northvale.example/a.txt"/>'
        "<description>&lt;img src='https://img.example/ferry.jpg' width='800'&gt; late</description></item></channel></rss>"
    )
    (entry,) = read_feed(body.encode(), "https://northvale.example/feed").entries
    assert [claim.url for claim in entry.images] == ["https://img.example/ferry.jpg"]


def test_an_enclosure_without_a_type_is_judged_by_its_address() -> None:
    body = (
        '<rss version="2.0"><channel><title>x</title><item><title>Ferry</title><link>https://northvale.example/n/1</link>'
        '<enclosure url="https://img.example/ferry.jpg" length="9"/></item><item><title>Bridge</title>'
        '<link>https://northvale.example/n/2</link><enclosure url="https://img.example/bridge"/></item></channel></rss>'
    )
    ferry, bridge = read_feed(body.encode(), "https://northvale.example/feed").entries
    assert [claim.url for claim in ferry.images] == ["https://img.example/ferry.jpg"]
    assert bridge.images == ()


async def test_the_feeds_date_is_checked_against_the_pages(tmp_path: Path) -> None:
    """A content system that stamps an item with the time of the refresh, and one that stamps it with a fixed old day."""
    fresh = Item("/n/old", "2026-01-05T09:00:00Z", feed_date="2026-03-04T09:00:00Z", images=[("/i/1.jpg", "The mayor")])
    fixed = Item("/n/new", "2026-03-04T09:00:00Z", feed_date="1970-01-01T00:00:00Z", images=[("/i/1.jpg", "The mayor")])
    host = "harbour.example"
    routes = Publisher(host, [fresh, fixed], {"/i/1.jpg": photo(1)}).routes()
    async with Site(routes) as site:
        config = collect_config(site.netloc, host)
        async with WebClient(config, cache=None) as fetcher:
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path))
            rows = [SourceSection(name="h", url=f"http://{host}/feed.xml")]
            links = [item for item in await find(WINDOW, rows, config, deps=deps) if isinstance(item, Link)]
            found = await run(links, config, window=WINDOW, deps=deps)
    (article,) = [item for item in found if isinstance(item, Article)]
    assert article.url.endswith("/n/new")
    assert {item.item.rsplit("/", 1)[-1]: item.code for item in found if isinstance(item, Rejected)} == {
        "old": Code.OUTSIDE_WINDOW
    }


async def test_a_source_without_scheme_or_with_an_error_page_is_a_failure(tmp_path: Path) -> None:
    host = "harbour.example"
    routes = {
        **Publisher(host, [Item("/n/1", "2026-03-04T09:00:00Z")]).routes(),
        f"{host}/moved": Reply(b"<html><body>we moved</body></html>"),
    }
    async with Site(routes) as site:
        config = collect_config(site.netloc, host)
        async with WebClient(config, cache=None) as fetcher:
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path))
            rows = [
                SourceSection(name="good", url=f"http://{host}/feed.xml"),
                SourceSection(name="bare", url=f"{host}/feed.xml"),
                SourceSection(name="moved", url=f"http://{host}/moved"),
            ]
            found = await find(WINDOW, rows, config, deps=deps)
    assert {item.source: item.code for item in found if isinstance(item, Rejected)} == {
        "bare": Code.SOURCE_UNREACHABLE,
        "moved": Code.SOURCE_NOT_A_FEED,
    }
    assert [item.source for item in found if isinstance(item, Link)] == ["good"]


def test_a_range_of_years_becomes_short_queries() -> None:
    row = SourceSection(name="g", type="google_news", options={"query": "tidal bridge", "every_days": 7})
    urls = query_urls(row, parse_window("2017-01-01..2019-12-31"), "tidal bridge")
    assert len(urls) == 157
    assert "after%3A2017-01-01+before%3A2017-01-08" in urls[0]
    assert "before%3A2020-01-01" in urls[-1]


@pytest.mark.parametrize(
    ("raw", "lang", "right"),
    [
        # 10 December lies ahead: refused; the day order follows the language where it is known
        ("2026-12-10", "en-GB", None),
        ("10/12/2026", "en-GB", None),
        ("10/03/2026", "de", "2026-03-10"),
        ("03/10/2026", "en-US", "2026-03-10"),
        ("13/03/2026", "en", "2026-03-13"),
        ("10/03/2026", "en", None),
    ],
)
def test_dates_ahead_and_mixed_day_orders(raw: str, lang: str, right: str | None) -> None:
    found = extract_page(html(f'<meta name="dc.date" content="{raw}">', lang=lang), URL, latest=NOW)
    days = {w.value.strftime("%Y-%m-%d") for w in found.witnesses if w.kind == "meta"}
    assert days == ({right} if right else set())


def test_published_beats_modified_whatever_the_order_and_the_zone_is_kept() -> None:
    head = (
        '<meta property="article:modified_time" content="2026-02-01T10:00:00+05:30">'
        '<meta property="article:published_time" content="2026-03-04T23:30:00-08:00">'
        '<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2026-03-04T23:30:00-08:00"}</script>'
    )
    found = extract_page(html(head), URL, latest=NOW)
    assert found.decision.published_at == datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
    assert found.decision.certain
    first = next(w for w in found.witnesses if w.kind == "jsonld")
    assert (first.zone, first.precision, first.raw) == ("stated", "second", "2026-03-04T23:30:00-08:00")
    day = extract_page(
        html('<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2026-03-04"}</script>'),
        URL,
        latest=NOW,
    )
    assert day.decision.precision == "day"


def test_an_icon_as_share_picture_never_leads() -> None:
    figure = f'<figure><img src="/i/bridge-large.jpg"><figcaption>The mayor</figcaption></figure>{story("bridge")}'
    for icon in (
        '<meta property="og:image" content="https://northvale.example/favicon-32.png">',
        '<meta property="og:image" content="/i/share.png"><meta property="og:image:width" content="32">',
        '<meta property="og:image" content="/i/brand-512x512.png">',
    ):
        found = extract_page(html(icon, figure), URL, latest=NOW).images
        assert [claim.url for claim in found] == ["https://northvale.example/i/bridge-large.jpg"]


def test_reading_a_page_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("reading a page opened a connection")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    item = Item("/n/1", "2026-03-04T09:00:00Z", images=[("https://img.example/a.jpg", "The mayor")])
    bare = html('<meta name="author" content="">', '<span class="byline">By Ilse Brandvik</span>' + story("bridge"))
    for body in (page(item), bare, gzip.compress(bare), b"<html></html>"):
        extract_page(body, URL, latest=NOW)


async def test_spellings_of_one_address_are_one_article_and_the_first_address_stays(tmp_path: Path) -> None:
    host = "harbour.example"
    item = Item("/n/1", "2026-03-04T09:00:00Z", images=[("/i/1.jpg", "The mayor")])
    links = [
        Link(url=f"http://{host}/n/1/?utm_source=rss", source="a", source_type="feed", title="t"),
        Link(url=f"http://{host}/amp/n/1", source="b", source_type="gdelt", title="t"),
        Link(url=f"http://{host}/n/1?outputType=amp", source="c", source_type="gdelt", title="t"),
    ]
    routes: dict[str, Reply] = dict(Publisher(host, [item], {"/i/1.jpg": photo(1)}).routes())
    canonical = page(Item(item.path, item.date, images=item.images, head='<link rel="canonical" href="/n/1">'))
    for path in ("/n/1/?utm_source=rss", "/amp/n/1", "/n/1?outputType=amp"):
        routes[f"{host}{path}"] = Reply(canonical)
    async with Site(routes) as site:
        config = collect_config(site.netloc, host)
        async with WebClient(config, cache=None) as fetcher:
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path))
            found = await run(links, config, window=WINDOW, deps=deps)
    done = reduce([item for item in found if isinstance(item, Article)], config)
    (article,) = [one for one in done if isinstance(one, Article)]
    assert article.url.startswith(f"http://{host}/")
    assert [one.code for one in done if isinstance(one, Rejected)] == [Code.DUPLICATE_URL] * 2


def test_hashes_are_of_upright_flattened_pixels() -> None:
    import io

    from PIL import Image

    from engine.core.images import open_image

    upright = Image.open(io.BytesIO(photo(3, fmt="PNG")))
    turned, hidden = io.BytesIO(), io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(turned, "PNG", exif=exif)
    clear = upright.convert("RGBA")
    clear.putalpha(Image.new("L", upright.size, 0))
    clear.paste((255, 0, 255, 0), (0, 0, 40, 40))
    clear.save(hidden, "PNG")
    assert perceptual_hash(open_image(turned.getvalue()).pixels) == perceptual_hash(
        open_image(photo(3, fmt="PNG")).pixels
    )
    assert open_image(hidden.getvalue()).pixels.min() == 255

# ruff: noqa: E501
"""Sitemaps: news and image extensions, indexes, gzip, monthly archives, and what is none."""

from __future__ import annotations

import gzip

import pytest
from support.answers import CONFIG, WINDOW, deps, links_of

from engine.core.config import SourceSection
from engine.core.schema import Code, Link, Rejected
from engine.news.sources import SourceError, source_type
from engine.news.sources.sitemap import may_hold, period_in, read_sitemap

NEWS_MAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc>https://x.example/a</loc><lastmod>2026-03-05</lastmod><news:news><news:publication><news:name>Harbour Post</news:name>
<news:language>en</news:language></news:publication><news:publication_date>2026-03-04T09:00:00+01:00</news:publication_date>
<news:title>Bridge &amp; tunnel</news:title></news:news><image:image><image:loc>https://x.example/i/a.jpg</image:loc>
<image:caption>The mayor</image:caption></image:image></url>
<url><loc>https://x.example/old</loc><lastmod>2026-01-05</lastmod></url>
<url><loc>https://x.example/late</loc><news:news><news:publication_date>2026-03-20</news:publication_date></news:news></url>
<url><loc>https://x.example/undated</loc></url>
<url><loc>https://x.example/touched</loc><lastmod>2026-05-05</lastmod></url>
</urlset>"""


async def test_a_news_sitemap_with_its_extensions() -> None:
    row = SourceSection(name="s", type="sitemap", url="https://x.example/news.xml")
    for body in (NEWS_MAP, gzip.compress(NEWS_MAP)):
        found = await links_of(row, lambda _, body=body: body)  # type: ignore[misc]
        links = [item for item in found if isinstance(item, Link)]
        assert [link.url.rsplit("/", 1)[1] for link in links] == ["a", "touched"]
        first = links[0]
        assert (first.title, first.publisher, first.images[0].caption) == (
            "Bridge & tunnel",
            "Harbour Post",
            "The mayor",
        )
        assert [(w.role, f"{w.value:%d %H:%M}") for w in first.witnesses] == [
            ("published", "04 08:00"),
            ("modified", "05 00:00"),
        ]
        assert {item.item.rsplit("/", 1)[1]: item.code for item in found if isinstance(item, Rejected)} == {
            "old": Code.OUTSIDE_WINDOW,
            "late": Code.OUTSIDE_WINDOW,
            "undated": Code.NO_DATE,
        }
    kept = await links_of(row.model_copy(update={"options": {"undated": "keep"}}), lambda _: NEWS_MAP)
    assert any(isinstance(item, Link) and item.url.endswith("undated") for item in kept)


async def test_of_an_index_only_the_maps_that_can_hold_the_window_are_read() -> None:
    names = [
        "sitemap-2026-02.xml",
        "sitemap-2026-03.xml.gz",
        "sitemap-2025.xml",
        "sitemap-20260304.xml",
        "sitemap-1.xml",
        "broken.xml",
    ]
    dates = {"sitemap-1.xml": "<lastmod>2026-02-01</lastmod>"}
    entries = "".join(f"<sitemap><loc>/maps/{name}</loc>{dates.get(name, '')}</sitemap>" for name in names)
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'.encode()

    def answer(url: str) -> bytes | Code:
        if url.endswith("index.xml"):
            return index
        return Code.FETCH_GONE if "broken" in url else NEWS_MAP

    chosen, fetcher = deps(answer)
    row = SourceSection(name="s", type="sitemap", url="https://x.example/index.xml")
    found = await source_type("sitemap").links(WINDOW, row, CONFIG, deps=chosen)
    assert [url.rsplit("/", 1)[1] for url in fetcher.asked] == [
        "index.xml", "sitemap-2026-03.xml.gz", "sitemap-20260304.xml", "broken.xml",
    ]  # fmt: skip
    assert any(isinstance(item, Rejected) and item.code is Code.SOURCE_UNREACHABLE for item in found)
    few = row.model_copy(update={"options": {"max_maps": 2}})
    found = await source_type("sitemap").links(WINDOW, few, CONFIG, deps=chosen)
    assert sum(isinstance(item, Rejected) and item.code is Code.LIMIT for item in found) == 2


@pytest.mark.parametrize(
    ("url", "period"),
    [
        ("https://x.example/sitemap-2026-03.xml", ("2026-03-01", "2026-04-01")),
        ("https://x.example/sitemap.xml?yyyy=2024&mm=12&dd=03", ("2024-12-01", "2025-01-01")),
        ("https://x.example/2026/03/04/sitemap.xml", ("2026-03-04", "2026-03-05")),
        ("https://x.example/archive/2025.xml", ("2025-01-01", "2026-01-01")),
        ("https://x.example/sitemap-12.xml", None),
        ("https://2024.example/sitemap.xml", None),
        ("https://x.example/post-sitemap20261345.xml", None),
    ],
)
def test_periods_in_the_names_of_maps(url: str, period: tuple[str, str] | None) -> None:
    found = period_in(url)
    assert (tuple(f"{part:%Y-%m-%d}" for part in found) if found else None) == period


def test_what_is_no_sitemap() -> None:
    for body in (b"", b"<html><body>no</body></html>", b"<rss/>", b"\x1f\x8bdamaged"):
        with pytest.raises(SourceError):
            read_sitemap(body, "https://x.example/s.xml")
    kind, entries = read_sitemap(b"https://x.example/a\nhttps://x.example/b\n", "https://x.example/s.txt")
    assert (kind, len(entries)) == ("urls", 2)
    assert may_hold(entries[0], WINDOW)


def test_an_entity_bomb_in_a_sitemap_stays_folded() -> None:
    bomb = b'<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]><urlset><url><loc>https://x.example/&c;</loc></url></urlset>'
    kind, entries = read_sitemap(bomb, "https://x.example/s.xml")
    assert kind == "urls"
    assert all(len(entry.loc) < 200 for entry in entries)

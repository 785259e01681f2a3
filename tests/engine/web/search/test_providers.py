"""Each remote provider against a loopback service in its own format: pages are fetched, dated, kept or dropped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from support.loopback import Reply, Request, Site

from engine.core.errors import TransientError
from engine.core.images import encode_jpeg, encode_png
from engine.core.protocols import Fetched
from engine.core.schema import Code
from engine.web.errors import FetchError
from engine.web.search.engines import Brave, GoogleSearch, SearxNg
from engine.web.search.guard import read_instant
from engine.web.search.pages import ReadPage
from engine.web.search.record import RecordedSearch
from engine.web.search.registry import Combined
from engine.web.search.wikimedia import Wikimedia, paragraphs

UNTIL = datetime(2026, 3, 9, tzinfo=UTC)
SOURCE = "https://north.example/own"


class Pages:
    """A `Fetcher` over stored pages and pictures; what it does not hold is gone. `asked` lists what was fetched."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    async def fetch(self, url: str, *, kind: str) -> Fetched:
        self.asked.append(url)
        if url not in self.pages:
            raise FetchError(Code.FETCH_GONE, "HTTP 404")
        return Fetched(url=url, status=200, headers={}, body=self.pages[url])


def read(body: bytes, url: str) -> ReadPage | None:
    """Pages here are JSON: {"title", "text", "published"}."""
    told = json.loads(body)
    return ReadPage(url=url, title=told["title"], text=told["text"], published=read_instant(told.get("published")))


def page(text: str, published: str | None) -> bytes:
    return json.dumps({"title": f"T {text}", "text": text, "published": published}).encode()


STORED = {
    "https://a.example/in": page("in time", "2026-03-04T08:00:00+00:00"),
    "https://a.example/late": page("dated late by itself", "2026-03-10"),
    "https://a.example/undated": page("undated", None),
    "https://a.example/claimed": page("dated by the service alone", None),
    SOURCE: page("the source", "2026-03-04"),
    "https://a.example/second": page("also in time", "2026-03-08"),
}
CLAIMED = "2026-03-05T10:00:00+00:00"
ROWS = [
    ("https://a.example/gone", None),
    ("https://a.example/in", CLAIMED),
    ("https://a.example/late", CLAIMED),
    ("https://a.example/undated", None),
    (SOURCE + "?utm_source=x", CLAIMED),
    ("https://a.example/claimed", CLAIMED),
    ("https://a.example/future", "2026-03-11T00:00:00+00:00"),
    ("https://a.example/second", None),
]
KEPT = ["https://a.example/in", "https://a.example/claimed", "https://a.example/second"]

Make = Callable[[str, Pages], Any]


def searxng_answer(query: dict[str, list[str]]) -> dict[str, Any]:
    if query["categories"] == ["images"]:
        return {"results": [{"url": "https://a.example/p", "img_src": "https://a.example/p.jpg", "title": "Ada"}]}
    return {"results": [{"url": u, "title": "t", "content": "s", "publishedDate": d} for u, d in ROWS]}


def brave_answer(query: dict[str, list[str]]) -> dict[str, Any]:
    if "freshness" not in query:
        return {
            "results": [
                {
                    "url": "https://a.example/p",
                    "title": "Ada",
                    "page_fetched": "2026-03-01T00:00:00Z",
                    "properties": {"url": "https://a.example/p.jpg"},
                }
            ]
        }
    assert query["freshness"] == ["2000-01-01to2026-03-08"]
    return {"web": {"results": [{"url": u, "title": "t", "page_age": (d or "")[:19]} for u, d in ROWS]}}


def google_answer(query: dict[str, list[str]]) -> dict[str, Any]:
    assert query["cx"] == ["engine"]
    if query.get("searchType") == ["image"]:
        return {"items": [{"link": "https://a.example/p.jpg", "image": {"contextLink": "https://a.example/p"}}]}
    assert query["sort"] == ["date:r:20000101:20260308"]
    return {
        "items": [
            {"link": u, "title": "t", "pagemap": {"metatags": [{"article:published_time": d}]} if d else {}}
            for u, d in ROWS
        ]
    }


PROVIDERS: dict[str, tuple[str, Callable[[dict[str, list[str]]], dict[str, Any]], Make]] = {
    "searxng": ("/search", searxng_answer, lambda host, pages: SearxNg(host, fetcher=pages, read=read)),
    "brave": ("/res/v1/web/search", brave_answer, lambda host, pages: Brave("k", fetcher=pages, read=read, host=host)),
    "google": (
        "/customsearch/v1",
        google_answer,
        lambda host, pages: GoogleSearch("k", "engine", fetcher=pages, read=read, host=host),
    ),
}


@asynccontextmanager
async def service(path: str, answer: Callable[[dict[str, list[str]]], dict[str, Any]]) -> AsyncIterator[Site]:
    def reply(request: Request) -> Reply:
        query = parse_qs(urlsplit(request.target).query)
        return Reply(json.dumps(answer(query)).encode(), headers={"Content-Type": "application/json"})

    images = path.replace("/web/", "/images/")
    async with Site({path: reply, images: reply}) as site:
        yield site


@pytest.mark.parametrize("name", sorted(PROVIDERS))
async def test_only_pages_that_may_be_known_come_back(name: str) -> None:
    path, answer, make = PROVIDERS[name]
    pages = Pages(STORED)
    async with service(path, answer) as site:
        provider = make(site.url(""), pages)
        hits = await provider.text("who won", limit=5, until=UNTIL, blocked=[SOURCE])
        await provider.close()
    assert [hit.url for hit in hits] == KEPT
    assert [hit.text for hit in hits] == ["in time", "dated by the service alone", "also in time"]
    assert hits[0].published == datetime(2026, 3, 5, 10, tzinfo=UTC)
    assert hits[2].published == datetime(2026, 3, 8, 23, 59, 59, 999999, tzinfo=UTC)
    assert all(hit.published is not None and hit.published < UNTIL for hit in hits)
    # neither the source nor what the service itself dates too late is fetched at all
    assert not [url for url in pages.asked if url.startswith(SOURCE) or url.endswith("future")]


@pytest.mark.parametrize("name", sorted(PROVIDERS))
async def test_recorded_answers_are_given_again_when_the_service_is_gone(name: str, tmp_path: Path) -> None:
    path, answer, make = PROVIDERS[name]
    pages = Pages({**STORED, "https://a.example/p.jpg": encode_jpeg(np.full((20, 30, 3), 90, np.uint8))})
    async with service(path, answer) as site:
        provider = make(site.url(""), pages)
        online = RecordedSearch(provider, tmp_path)
        first = await online.text("who won", limit=5, until=UNTIL, blocked=[SOURCE])
        (picture,) = await online.images("Ada Brook", limit=2)
        await provider.close()
        seen = len(site.seen)
    offline = RecordedSearch(None, tmp_path, name=name, offline=True)
    assert await offline.text("who won", limit=5, until=UNTIL, blocked=[SOURCE]) == first
    (again,) = await offline.images("Ada Brook", limit=2)
    assert np.array_equal(again.image, picture.image)
    assert [hit.url for hit in first] == KEPT
    assert seen == 2
    with pytest.raises(TransientError, match=f"{name} was never asked"):
        await offline.text("who lost", limit=5, until=UNTIL, blocked=[SOURCE])


@pytest.mark.parametrize("name", sorted(PROVIDERS))
async def test_pictures_need_a_date_once_there_is_a_cutoff(name: str) -> None:
    path, answer, make = PROVIDERS[name]
    pages = Pages({"https://a.example/p.jpg": encode_jpeg(np.full((20, 30, 3), 90, np.uint8))})
    async with service(path, answer) as site:
        provider = make(site.url(""), pages)
        free = await provider.images("Ada Brook", limit=2)
        bound = await provider.images("Ada Brook", limit=2, until=UNTIL)
        await provider.close()
    assert [hit.image.shape for hit in free] == [(20, 30, 3)]
    assert [hit.url for hit in bound] == (["https://a.example/p.jpg"] if name == "brave" else [])


HTML = (
    "<div><table><tr><td><p>In a table that is left out of the text</p></td></tr></table>"
    "<p>Ada <b>Brook</b> opened the tidal gate<sup>[1]</sup> in Stoneport.[2]</p><p>short</p>"
    "<ul><li>She was born in Stoneport in 1970.</li></ul><ol class='references'><li>A reference, not text at all"
    "</li></ol></div>"
)


async def test_wikipedia_is_read_as_of_the_cutoff(tmp_path: Path) -> None:
    asked: list[dict[str, list[str]]] = []
    picture = encode_png(np.full((20, 30, 3), 90, np.uint8))

    def info(name: str, day: str) -> dict[str, Any]:
        place = f"https://upload.example/{name}"
        return {
            "title": f"File:{name}",
            "imageinfo": [
                {
                    "url": place,
                    "descriptionurl": f"https://commons.example/{name}",
                    "timestamp": day,
                    "mime": "image/png",
                }
            ],
        }

    def reply(request: Request) -> Reply:
        query = parse_qs(urlsplit(request.target).query)
        asked.append(query)
        action = query["action"][0]
        found: dict[str, Any] = {}
        if action == "query" and query.get("list") == ["search"]:
            found = {"query": {"search": [{"title": "Ada Brook"}, {"title": "Not there yet"}, {"title": "Own page"}]}}
        elif action == "query" and query.get("prop") == ["revisions"]:
            exists = query["titles"] == ["Ada Brook"]
            old = [{"revid": 77, "timestamp": "2026-03-08T23:59:59Z"}]
            found = {"query": {"pages": [{"title": "x", "revisions": old} if exists else {"title": "x"}]}}
        elif action == "parse":
            found = {"parse": {"text": HTML}}
        elif action == "wbsearchentities":
            found = {
                "search": [{"id": "Q1", "match": {"text": "Ada Brooke"}}, {"id": "Q2", "match": {"text": "Ada Brook"}}]
            }
        elif action == "wbgetclaims":
            found = {"claims": {"P18": [{"mainsnak": {"datavalue": {"value": "Ada.png"}}}, {"mainsnak": {}}]}}
        elif query.get("prop") == ["imageinfo"]:
            if "titles" in query:
                found = {"query": {"pages": [info("Ada.png", "2020-01-01T00:00:00Z")]}}
            else:
                late = info("Late.png", "2026-03-09T00:00:00Z")
                found = {
                    "query": {"pages": [{"index": 2, **late}, {"index": 1, **info("Old.png", "2019-01-01T00:00:00Z")}]}
                }
        return Reply(json.dumps(found).encode(), headers={"Content-Type": "application/json"})

    async with Site({"/w/api.php": reply}) as site:
        host = site.url("")
        fetcher = Pages({f"https://upload.example/{name}.png": picture for name in ("Ada", "Old", "Late")})
        wiki = Wikimedia(fetcher=fetcher, agent="tests (a@b.example)", wikipedia=host, wikidata=host, commons=host)
        online, own = RecordedSearch(wiki, tmp_path), [f"{host}/wiki/Own_page"]
        hits = await online.text("tidal gate", limit=2, until=UNTIL, blocked=own)
        pictures = await online.images("Ada Brook", limit=3, until=UNTIL)
        await wiki.close()
        agents = {request.headers["user-agent"] for request in site.seen}
    assert [(hit.title, hit.published) for hit in hits] == [("Ada Brook", datetime(2026, 3, 8, 23, 59, 59, tzinfo=UTC))]
    assert hits[0].text == "Ada Brook opened the tidal gate in Stoneport.\nShe was born in Stoneport in 1970."
    revisions = [query for query in asked if query.get("prop") == ["revisions"]]
    assert revisions[0]["rvstart"] == ["2026-03-08T23:59:59Z"]
    assert [query["oldid"] for query in asked if query["action"] == ["parse"]] == [["77"]]
    assert [hit.url.rsplit("/", 1)[1] for hit in pictures] == ["Ada.png", "Old.png"]
    assert agents == {"tests (a@b.example)"}
    offline = RecordedSearch(None, tmp_path, name="wikipedia", offline=True)
    assert await offline.text("tidal gate", limit=2, until=UNTIL, blocked=own) == hits
    again = await offline.images("Ada Brook", limit=3, until=UNTIL)
    assert [hit.url for hit in again] == [hit.url for hit in pictures]


def test_paragraphs_of_broken_html() -> None:
    assert paragraphs("<p>One sentence that is long enough<p>Another sentence, also long enough</p></table>") == (
        "One sentence that is long enough\nAnother sentence, also long enough"
    )


async def test_providers_are_asked_in_turn_until_there_is_enough() -> None:
    async with service("/search", searxng_answer) as site:
        first = SearxNg(site.url(""), fetcher=Pages(STORED), read=read)
        second = SearxNg(
            site.url(""), fetcher=Pages({"https://a.example/in": STORED["https://a.example/in"]}), read=read
        )
        both = Combined([second, first])
        hits = await both.text("q", limit=3, until=UNTIL, blocked=[SOURCE])
        one = await both.text("q", limit=1, until=UNTIL)
        await first.close()
        await second.close()
    assert [hit.url for hit in hits] == KEPT
    assert len(one) == 1
    assert both.name == "searxng+searxng"

"""robots.txt and the signs by which publishers decline use for AI."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loopback import Reply, Site

from engine.core.config import CollectSection
from engine.core.schema import Code
from engine.web.client import WebClient
from engine.web.errors import FetchError
from engine.web.optout import REMARK_HEADER, header_sign, meta_sign
from engine.web.robots import Rules, parse
from engine.web.tdmrep import parse as parse_reservations

PAGE = Reply(b"<html><body><p>news</p></body></html>")


def config(**changes: Any) -> CollectSection:
    return CollectSection(
        **{"allow_hosts": ("127.0.0.1",), "per_host_delay_s": 0.0, "retries": 0, "timeout_s": 5.0, **changes}
    )


async def code_of(client: WebClient, url: str, kind: Any = "page") -> Code:
    with pytest.raises(FetchError) as caught:
        await client.fetch(url, kind=kind)
    return caught.value.code


async def test_robots_is_obeyed_read_once_and_can_be_switched_off() -> None:
    routes = {"/robots.txt": Reply(b"User-agent: *\nDisallow: /private\n"), "/a": PAGE, "/private/b": PAGE}
    async with Site(routes) as site:
        async with WebClient(config(), cache=None) as client:
            await client.fetch(site.url("/a"), kind="page")
            assert await code_of(client, site.url("/private/b")) is Code.ROBOTS_DISALLOWED
            assert await code_of(client, site.url("/private/b"), "image") is Code.ROBOTS_DISALLOWED
        assert site.paths() == ["/robots.txt", "/.well-known/tdmrep.json", "/a"]
        async with WebClient(config(obey_robots=False), cache=None) as client:
            await client.fetch(site.url("/private/b"), kind="page")


async def test_our_own_agent_is_named() -> None:
    routes = {
        "/robots.txt": Reply(b"User-agent: nest-data-engine\nDisallow: /\n\nUser-agent: *\nAllow: /\n"),
        "/a": PAGE,
    }
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/a")) is Code.ROBOTS_DISALLOWED


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, None), (403, None), (410, None), (500, Code.FETCH_SERVER_ERROR), (503, Code.FETCH_SERVER_ERROR)],
)
async def test_unavailable_means_allowed_and_unreachable_means_not(status: int, code: Code | None) -> None:
    async with Site({"/robots.txt": Reply(b"", status), "/a": PAGE}) as site, WebClient(config(), cache=None) as client:
        if code is None:
            assert (await client.fetch(site.url("/a"), kind="page")).status == 200
        else:
            assert await code_of(client, site.url("/a")) is code
            assert "/a" not in site.paths()


async def test_a_redirect_into_a_forbidden_place_is_not_followed() -> None:
    routes = {
        "/robots.txt": Reply(b"User-agent: *\nDisallow: /private\n"),
        "/a": Reply(status=302, headers={"Location": "/private"}),
    }
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/a")) is Code.ROBOTS_DISALLOWED
    assert "/private" not in site.paths()


async def test_crawl_delay_wins_when_it_is_longer() -> None:
    routes = {"/robots.txt": Reply(b"User-agent: *\nCrawl-delay: 0.4\n"), "/a": PAGE}
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        start = time.monotonic()
        for n in range(3):
            await client.fetch(site.url(f"/a?{n}"), kind="page")
        assert time.monotonic() - start >= 0.8


async def test_ai_agents_in_robots_txt_are_an_opt_out_or_a_remark(tmp_path: Path) -> None:
    routes = {"/robots.txt": Reply(b"User-agent: GPTBot\nDisallow: /\n"), "/a": PAGE}
    async with Site(routes) as site:
        async with WebClient(config(), cache=None) as client:
            assert await code_of(client, site.url("/a")) is Code.AI_OPT_OUT
        async with WebClient(config(obey_ai_opt_out=False), cache=tmp_path) as client:
            found = await client.fetch(site.url("/a"), kind="page")
        url = site.url("/a")
    assert found.headers[REMARK_HEADER] == "robots.txt: GPTBot"
    async with WebClient(config(obey_ai_opt_out=False), cache=tmp_path, offline=True) as client:
        assert (await client.fetch(url, kind="page")).headers[REMARK_HEADER] == "robots.txt: GPTBot"
    async with WebClient(config(), cache=tmp_path, offline=True) as client:
        assert await code_of(client, url) is Code.AI_OPT_OUT


async def test_headers_are_an_opt_out_too() -> None:
    routes = {
        "/noai": Reply(PAGE.body, headers={"X-Robots-Tag": "noindex, noai"}),
        "/tdm": Reply(PAGE.body, headers={"TDM-Reservation": "1"}),
        "/image-only": Reply(PAGE.body, headers={"X-Robots-Tag": "noimageai"}),
    }
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/noai")) is Code.AI_OPT_OUT
        assert await code_of(client, site.url("/tdm")) is Code.AI_OPT_OUT
        assert (await client.fetch(site.url("/image-only"), kind="page")).status == 200
        assert await code_of(client, site.url("/image-only"), "image") is Code.AI_OPT_OUT


async def test_a_reservation_file_is_an_opt_out_or_a_remark(tmp_path: Path) -> None:
    rules = (
        b'[{"location": "/free/", "tdm-reservation": 0}, '
        b'{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://post.example/terms"}]'
    )
    routes = {"/.well-known/tdmrep.json": Reply(rules), "/a": PAGE, "/free/b": PAGE, "/feed": Reply(b"<rss></rss>")}
    async with Site(routes) as site:
        async with WebClient(config(), cache=tmp_path) as client:
            assert await code_of(client, site.url("/a")) is Code.AI_OPT_OUT
            assert await code_of(client, site.url("/a"), "image") is Code.AI_OPT_OUT
            await client.fetch(site.url("/free/b"), kind="page")
            await client.fetch(site.url("/feed"), kind="feed")
        assert site.paths().count("/.well-known/tdmrep.json") == 1
        assert "/a" not in site.paths()
        async with WebClient(config(obey_ai_opt_out=False), cache=None) as client:
            found = await client.fetch(site.url("/a"), kind="page")
        url, free = site.url("/a"), site.url("/free/b")
    assert found.headers[REMARK_HEADER] == "tdmrep.json: reserved, see https://post.example/terms"
    async with WebClient(config(), cache=tmp_path, offline=True) as client:
        assert await code_of(client, url) is Code.AI_OPT_OUT
        assert (await client.fetch(free, kind="page")).from_cache


@pytest.mark.parametrize("status", [404, 410, 403, 500, 429])
async def test_without_a_readable_reservation_file_nothing_is_reserved(status: int) -> None:
    routes = {"/.well-known/tdmrep.json": Reply(b"", status), "/a": PAGE}
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert (await client.fetch(site.url("/a"), kind="page")).status == 200


@pytest.mark.parametrize(
    ("location", "path", "hit"),
    [
        ("/", "/n/bridge", True),
        ("/directory-a/", "/directory-a/x.pdf", True),
        ("/directory-a/", "/directory-b/x.pdf", False),
        ("/images/*.jpg", "/images/2026/a.jpg", True),
        ("/images/*.jpg$", "/images/a.jpg?w=3", False),
        ("/exact$", "/exact", True),
        ("/exact$", "/exactly", False),
        ("*", "/anything", True),
        ("/a.b", "/aXb", False),
        ("/*/end$", "/a/end", True),
        ("/*a$", "/a", True),
        ("/a*a$", "/a", False),
        ("/" + "*a" * 200 + "*b", "/" + "a" * 2000, False),
    ],
)
def test_locations_of_reservations(location: str, path: str, hit: bool) -> None:
    body = json.dumps([{"location": location, "tdm-reservation": 1}]).encode()
    assert bool(parse_reservations(body).sign(f"https://post.example{path}")) is hit


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["location", "tdm-reservation", "tdm-policy"]), x),
    ).map(lambda v: json.dumps([v]).encode())
)
def test_any_reservation_file_is_read(body: bytes) -> None:
    assert isinstance(parse_reservations(body).sign("https://post.example/a"), str)


@pytest.mark.parametrize(
    ("metas", "sign"),
    [
        ({"robots": "index, noai"}, "meta robots: noai"),
        ({"robots": "max-image-preview:large"}, ""),
        ({"robots": "noimageai"}, ""),
        ({"gptbot": "notrain"}, "meta gptbot: notrain"),
        ({"tdm-reservation": "1"}, "meta tdm-reservation: 1"),
        ({"tdm-reservation": "0"}, ""),
        ({}, ""),
    ],
)
def test_signs_in_meta_tags(metas: dict[str, str], sign: str) -> None:
    assert meta_sign(metas) == sign


def test_a_header_for_other_purposes_is_no_sign() -> None:
    assert header_sign({"x-robots-tag": "noarchive"}) == ""


def test_odd_robots_files_are_read() -> None:
    for body in (b"", b"\xff\xfe\x00", b"<html>not here</html>", b"User-agent: *\r\nDisallow: /a" + b"#" * 600_000):
        assert Rules(parse(body)).ai_sign("https://x.example/b") == ""

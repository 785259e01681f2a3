# ruff: noqa: SIM117
"""The guarded client against a loopback server that answers as told, also wrongly."""

from __future__ import annotations

import gzip
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from support.loopback import Reply, Request, Site

from engine.core.config import CollectSection
from engine.core.errors import ConfigError
from engine.core.schema import Code
from engine.web.client import WebClient
from engine.web.errors import FetchError

PAGE = b"<html><body><p>news</p></body></html>"


def config(site: Site | None = None, **changes: Any) -> CollectSection:
    values: dict[str, Any] = {
        "allow_hosts": ("127.0.0.1",),
        "per_host_delay_s": 0.0,
        "timeout_s": 5.0,
        "retries": 2,
        "obey_robots": False,
        "obey_ai_opt_out": False,
        **changes,
    }
    return CollectSection(**values)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.web.retry.FIRST_WAIT_S", 0.01)


async def code_of(client: WebClient, url: str, kind: Any = "page") -> Code:
    with pytest.raises(FetchError) as caught:
        await client.fetch(url, kind=kind)
    return caught.value.code


async def test_a_page_comes_with_its_bytes_and_final_address() -> None:
    routes = {"/a": Reply(status=301, headers={"Location": "/b"}), "/b": Reply(PAGE, headers={"X-One": "1"})}
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        found = await client.fetch(site.url("/a#top"), kind="page")
    assert (found.url, found.status, found.body) == (site.url("/b"), 200, PAGE)
    assert found.headers["x-one"] == "1"
    assert "nest-data-engine" in site.seen[0].headers["user-agent"]


async def test_f01_redirects_in_a_circle_end_and_are_not_tried_again() -> None:
    routes = {"/a": Reply(status=301, headers={"Location": "/b"}), "/b": Reply(status=302, headers={"Location": "/a"})}
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/a")) is Code.FETCH_REDIRECTS
    assert site.paths() == ["/a", "/b"]


async def test_a_long_chain_of_redirects_ends() -> None:
    routes = {f"/{n}": Reply(status=302, headers={"Location": f"/{n + 1}"}) for n in range(30)}
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/0")) is Code.FETCH_REDIRECTS
    assert len(site.seen) == 11


async def test_f02_a_body_that_ends_early_is_tried_once_more_from_the_start() -> None:
    async with Site({"/a": Reply(PAGE * 2000, length=50_000_0, cut=20_000)}) as site:
        async with WebClient(config(), cache=None) as client:
            assert await code_of(client, site.url("/a")) is Code.FETCH_TRUNCATED
        assert site.paths() == ["/a", "/a"]
        answers = iter([Reply(PAGE * 10, length=9999, cut=100), Reply(PAGE)])
        site.routes["/b"] = lambda _: next(answers)
        async with WebClient(config(), cache=None) as client:
            assert (await client.fetch(site.url("/b"), kind="page")).body == PAGE


async def test_f03_a_body_that_is_not_gzip_is_asked_for_unpacked() -> None:
    def answer(request: Request) -> Reply:
        if request.headers.get("accept-encoding") == "identity":
            return Reply(PAGE)
        return Reply(b"no gzip at all", headers={"Content-Encoding": "gzip"})

    async with Site({"/a": answer, "/b": Reply(PAGE, headers={"Content-Encoding": "gzip"})}) as site:
        async with WebClient(config(), cache=None) as client:
            assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE
            assert await code_of(client, site.url("/b")) is Code.FETCH_FAILED
    assert site.paths() == ["/a", "/a", "/b", "/b"]


async def test_packed_bodies_are_unpacked() -> None:
    packed = Reply(gzip.compress(PAGE), headers={"Content-Encoding": "gzip"})
    async with Site({"/a": packed}) as site, WebClient(config(), cache=None) as client:
        assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE


async def test_f04_an_announced_size_above_the_limit_is_not_read() -> None:
    async with Site({"/a": Reply(b"x", length=5_000_000_000)}) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/a"), "image") is Code.FETCH_TOO_LARGE


async def test_f05_not_modified_gives_the_kept_body(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.headers.get("if-none-match") == '"v1"':
            return Reply(status=304, headers={"ETag": '"v1"'})
        return Reply(b"<rss/>", headers={"ETag": '"v1"'})

    async with Site({"/feed": answer}) as site:
        for expected in (False, True, True):
            async with WebClient(config(), cache=tmp_path) as client:
                found = await client.fetch(site.url("/feed"), kind="feed")
            assert (found.body, found.from_cache) == (b"<rss/>", expected)
    assert len(site.seen) == 3


async def test_f06_a_wait_that_fits_is_kept_and_a_longer_one_postpones() -> None:
    answers = iter([Reply(status=429, headers={"Retry-After": "1"}), Reply(PAGE)])
    async with Site({"/a": lambda _: next(answers), "/b": Reply(status=429, headers={"Retry-After": "120"})}) as site:
        async with WebClient(config(max_retry_after_s=60), cache=None) as client:
            start = time.monotonic()
            assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE
            assert time.monotonic() - start >= 1.0
            assert await code_of(client, site.url("/b")) is Code.FETCH_RATE_LIMITED
    assert site.paths() == ["/a", "/a", "/b"]


async def test_f07_a_dripping_body_ends_at_the_overall_deadline() -> None:
    async with Site({"/a": Reply(b"x" * 600, drip_s=0.05)}) as site:
        async with WebClient(config(timeout_s=0.4, retries=0), cache=None) as client:
            start = time.monotonic()
            assert await code_of(client, site.url("/a")) is Code.FETCH_TIMEOUT
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (410, Code.FETCH_GONE, 1),
        (404, Code.FETCH_GONE, 1),
        (403, Code.FETCH_FORBIDDEN, 1),
        (401, Code.FETCH_FORBIDDEN, 1),
        (418, Code.FETCH_FAILED, 1),
        (500, Code.FETCH_SERVER_ERROR, 3),
        (503, Code.FETCH_SERVER_ERROR, 3),
        (429, Code.FETCH_RATE_LIMITED, 3),
        (501, Code.FETCH_SERVER_ERROR, 1),
    ],
)
async def test_f08_statuses_have_their_codes_and_their_patience(status: int, code: Code, tries: int) -> None:
    async with Site({"/a": Reply(PAGE, status)}) as site, WebClient(config(), cache=None) as client:
        assert await code_of(client, site.url("/a")) is code
    assert len(site.seen) == tries


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("http://169.254.169.254/latest/meta-data/", Code.FETCH_PRIVATE_ADDRESS),
        ("http://10.0.0.1/", Code.FETCH_PRIVATE_ADDRESS),
        ("http://[::1]/", Code.FETCH_PRIVATE_ADDRESS),
        ("http://2130706433/", Code.FETCH_PRIVATE_ADDRESS),
        ("http://localhost:1/", Code.FETCH_PRIVATE_ADDRESS),
        ("file:///etc/passwd", Code.FETCH_BAD_URL),
        ("ftp://127.0.0.1/x", Code.FETCH_BAD_URL),
        ("http://user:secret@127.0.0.1/", Code.FETCH_BAD_URL),
        ("http://[::1", Code.FETCH_BAD_URL),
    ],
)
async def test_f10_f11_redirects_to_private_addresses_and_other_schemes_are_refused(target: str, code: Code) -> None:
    async with Site({"/a": Reply(status=302, headers={"Location": target})}) as site:
        async with WebClient(config(), cache=None) as client:
            assert await code_of(client, site.url("/a")) is code
            assert await code_of(client, target) is code
    assert site.paths() == ["/a"]


async def test_f12_a_pdf_is_no_page_whatever_its_header_says() -> None:
    routes = {
        "/pdf": Reply(b"%PDF-1.7 ...", headers={"Content-Type": "text/html"}),
        "/json": Reply(b'{"a": "<b>"}', headers={"Content-Type": "text/html"}),
        "/empty": Reply(b"", headers={"Content-Type": "text/html"}),
        "/html": Reply(PAGE, headers={"Content-Type": "application/pdf"}),
    }
    async with Site(routes) as site, WebClient(config(), cache=None) as client:
        for path in ("/pdf", "/json", "/empty"):
            assert await code_of(client, site.url(path)) is Code.FETCH_WRONG_TYPE
        assert (await client.fetch(site.url("/html"), kind="page")).body == PAGE


async def test_f13_two_server_errors_then_a_page() -> None:
    answers = iter([Reply(status=503), Reply(status=503), Reply(PAGE)])
    async with Site({"/a": lambda _: next(answers)}) as site, WebClient(config(), cache=None) as client:
        assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE
    assert len(site.seen) == 3


async def test_f14_a_bomb_is_stopped_while_it_unpacks() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, compresslevel=6)
    async with Site({"/a": Reply(bomb, headers={"Content-Encoding": "gzip"})}) as site:
        async with WebClient(config(), cache=None) as client:
            assert await code_of(client, site.url("/a")) is Code.FETCH_TOO_LARGE


async def test_f15_a_cookie_wall_gets_its_cookie_back_once() -> None:
    def wall(request: Request) -> Reply:
        if "seen=1" in request.headers.get("cookie", ""):
            return Reply(PAGE)
        return Reply(status=302, headers={"Location": "/a", "Set-Cookie": "seen=1"})

    always = Reply(status=302, headers={"Location": "/b", "Set-Cookie": "seen=1"})
    async with Site({"/a": wall, "/b": always}) as site, WebClient(config(), cache=None) as client:
        assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE
        assert await code_of(client, site.url("/b")) is Code.FETCH_REDIRECTS
    assert site.paths() == ["/a", "/a", "/b", "/b"]


async def test_host_names_are_resolved_as_told_and_stay_private_unless_allowed() -> None:
    async with Site({"herald.example/a": Reply(PAGE)}) as site:
        allowed = config(resolve={"herald.example": site.netloc}, allow_hosts=("herald.example",))
        async with WebClient(allowed, cache=None) as client:
            assert (await client.fetch("http://herald.example/a", kind="page")).body == PAGE
        assert site.seen[0].host == "herald.example"
        async with WebClient(config(resolve={"herald.example": site.netloc}), cache=None) as client:
            assert await code_of(client, "http://herald.example/a") is Code.FETCH_PRIVATE_ADDRESS


async def test_a_name_that_dns_resolves_to_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def answer(self: Any, host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", answer)
    async with WebClient(config(), cache=None) as client:
        assert await code_of(client, "http://rebind.example/") is Code.FETCH_PRIVATE_ADDRESS


async def test_resets_and_closed_ports_are_failures_with_a_code() -> None:
    async with Site({"/a": Reply(reset=True), "/b": Reply(raw=b"no http at all\r\n\r\n")}) as site:
        async with WebClient(config(), cache=None) as client:
            assert await code_of(client, site.url("/a")) is Code.FETCH_TRUNCATED
            assert await code_of(client, site.url("/b")) is Code.FETCH_TRUNCATED
        port = site.port
    async with WebClient(config(), cache=None) as client:
        assert await code_of(client, f"http://127.0.0.1:{port}/a") is Code.FETCH_FAILED


async def test_offline_replays_bodies_and_failures_byte_for_byte(tmp_path: Path) -> None:
    routes = {"/a": Reply(PAGE, headers={"X-A": "b"}), "/gone": Reply(status=410), "/img": Reply(b"\xff\xd8\xff")}
    async with Site(routes) as site:
        async with WebClient(config(), cache=tmp_path) as client:
            first = await client.fetch(site.url("/a"), kind="page")
            picture = await client.fetch(site.url("/img"), kind="image")
            assert await code_of(client, site.url("/gone")) is Code.FETCH_GONE
        async with WebClient(config(), cache=tmp_path) as client:
            assert (await client.fetch(site.url("/a"), kind="page")).from_cache
        asked = len(site.seen)
        urls = [site.url(path) for path in ("/a", "/img", "/gone", "/never")]
    async with WebClient(config(), cache=tmp_path, offline=True) as client:
        again = await client.fetch(urls[0], kind="page")
        assert (again.url, again.status, dict(again.headers), again.body) == (
            first.url,
            first.status,
            dict(first.headers),
            first.body,
        )
        assert (await client.fetch(urls[1], kind="image")).body == picture.body
        assert await code_of(client, urls[2]) is Code.FETCH_GONE
        assert await code_of(client, urls[3]) is Code.FETCH_FAILED
    assert asked == 3


async def test_a_damaged_cache_entry_is_fetched_again(tmp_path: Path) -> None:
    async with Site({"/a": Reply(PAGE)}) as site:
        async with WebClient(config(), cache=tmp_path) as client:
            await client.fetch(site.url("/a"), kind="page")
        (entry,) = tmp_path.rglob("*.http")  # noqa: ASYNC240
        entry.write_bytes(entry.read_bytes()[:-5])
        async with WebClient(config(), cache=tmp_path) as client:
            assert (await client.fetch(site.url("/a"), kind="page")).body == PAGE
    assert len(site.seen) == 2


def test_offline_without_a_cache_is_a_mistake_of_the_config() -> None:
    with pytest.raises(ConfigError):
        WebClient(config(), cache=None, offline=True)


async def test_one_slow_host_does_not_hold_up_another() -> None:
    import asyncio

    async with Site({"slow.example/a": Reply(PAGE, first_s=1.5), "fast.example/a": Reply(PAGE)}) as site:
        names = {"slow.example": site.netloc, "fast.example": site.netloc}
        async with WebClient(config(resolve=names, allow_hosts=tuple(names), per_host=1), cache=None) as client:
            slow = [asyncio.ensure_future(client.fetch(f"http://slow.example/a?{n}", kind="page")) for n in range(2)]
            start = time.monotonic()
            await client.fetch("http://fast.example/a", kind="page")
            assert time.monotonic() - start < 1.0
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)


async def test_requests_to_one_host_are_spaced() -> None:
    async with Site({"/a": Reply(PAGE)}) as site, WebClient(config(per_host_delay_s=0.2), cache=None) as client:
        start = time.monotonic()
        for n in range(3):
            await client.fetch(site.url(f"/a?{n}"), kind="page")
    assert time.monotonic() - start >= 0.4


def test_the_tls_context_verifies() -> None:
    context = ssl.create_default_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname

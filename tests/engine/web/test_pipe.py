"""An archive read by a thread while it comes over the network."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.loopback import Reply, Site
from support.newsroom import collect_config

from engine.core.config import SourceSection
from engine.core.schema import Code, Link
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.deps import NewsDeps
from engine.news.sources import SourceError, source_type
from engine.web.client import WebClient
from engine.web.errors import FetchError
from engine.web.pipe import DEPTH, pipe

WINDOW = parse_window("2026-03-02..2026-03-08")


async def parts(count: int, *, fail: bool = False) -> AsyncIterator[bytes]:
    for n in range(count):
        yield bytes([n % 256]) * 1000
    if fail:
        raise FetchError(Code.FETCH_TRUNCATED, "cut")


async def test_what_goes_in_comes_out_in_order() -> None:
    async with pipe(parts(3 * DEPTH)) as handle:
        found = await asyncio.to_thread(handle.read)
    assert found == b"".join(bytes([n % 256]) * 1000 for n in range(3 * DEPTH))


async def test_a_break_reaches_the_reader() -> None:
    async with pipe(parts(3, fail=True)) as handle:
        with pytest.raises(FetchError):
            await asyncio.to_thread(handle.read)


async def test_a_reader_that_stops_early_stops_the_stream() -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    async with pipe(endless()) as handle:
        assert await asyncio.to_thread(handle.read, 10) == b"x" * 10
    before = taken
    await asyncio.sleep(0.1)
    # bounded: what waits between network and reader, and what the reader's buffer took
    assert taken == before <= DEPTH + 80


def record(url: str, body: bytes) -> bytes:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-03-04T10:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
    )
    return head.encode() + http + b"\r\n\r\n"


async def test_a_warc_of_the_web_is_read_while_it_comes(tmp_path: Path) -> None:
    page = b"<html><body><p>news</p></body></html>"
    out = io.BytesIO()
    for n in range(500):
        out.write(record(f"https://x.example/{n}", page + b"<!--" + b"x" * 2000 + b"-->"))
    whole = out.getvalue()
    routes = {"archive.example/a.warc": Reply(whole), "archive.example/cut.warc": Reply(whole, cut=len(whole) // 2)}
    async with Site(routes) as site:
        config = collect_config(site.netloc, "archive.example", obey_robots=False, obey_ai_opt_out=False)
        async with WebClient(config, cache=None) as fetcher:
            deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(tmp_path))
            row = SourceSection(name="a", type="archive", url="http://archive.example/a.warc")
            found = await source_type("archive").links(WINDOW, row, config, deps=deps)
            assert [item.url for item in found if isinstance(item, Link)] == [
                f"https://x.example/{n}" for n in range(500)
            ]
            for name in ("cut.warc", "missing.warc"):
                broken = row.model_copy(update={"url": f"http://archive.example/{name}"})
                with pytest.raises(SourceError):
                    await source_type("archive").links(WINDOW, broken, config, deps=deps)

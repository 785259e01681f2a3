"""Archives: WARC and JSONL, whole, damaged, and longer than memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.answers import links_of

from engine.core.config import SourceSection
from engine.core.schema import Code, Link, Rejected
from engine.core.store import BlobStore
from engine.news.sources import SourceError
from engine.news.sources.archive import stored_pages

PAGE = b"<html><head><title>t</title></head><body><p>news of the harbour</p></body></html>"


def warc(pages: list[tuple[str, str, bytes, str]], *, packed: bool = True) -> bytes:
    """A WARC 1.0 file as ISO 28500 has it; packed, each record is a gzip member of its own."""
    out = []
    for url, stored, body, status in pages:
        http = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\r\n".encode() + body
        head = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {stored}\r\n"
            f"WARC-Record-ID: <urn:uuid:{len(out):032d}>\r\nContent-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(http)}\r\n\r\n"
        )
        record = head.encode() + http + b"\r\n\r\n"
        out.append(gzip.compress(record) if packed else record)
    return b"".join(out)


@pytest.mark.parametrize("packed", [True, False])
async def test_a_warc_brings_its_pages_along(tmp_path: Path, packed: bool) -> None:
    data = warc(
        [
            ("https://x.example/a", "2026-03-04T10:00:00Z", PAGE, "200 OK"),
            ("https://x.example/late", "2026-03-12T10:00:00Z", PAGE, "200 OK"),
            ("https://x.example/before", "2026-02-12T10:00:00Z", PAGE, "200 OK"),
            ("https://x.example/much-later", "2026-05-12T10:00:00Z", PAGE, "200 OK"),
            ("https://x.example/gone", "2026-03-04T10:00:00Z", PAGE, "404 Not Found"),
            ("https://x.example/pdf", "2026-03-04T10:00:00Z", b"%PDF-1.4", "200 OK"),
        ],
        packed=packed,
    )
    place = tmp_path / ("news.warc.gz" if packed else "news.warc")
    place.write_bytes(data)
    row = SourceSection(name="cc", type="archive", url=str(place))
    found = await links_of(row, lambda _: Code.FETCH_FAILED, tmp_path / "blobs")
    links = [item for item in found if isinstance(item, Link)]
    assert [link.url for link in links] == ["https://x.example/a", "https://x.example/late"]
    assert BlobStore(tmp_path / "blobs").get(links[0].html_sha256, "html") == PAGE
    assert links[0].witnesses[0].kind == "archive"
    assert {item.code: item.detail for item in found if isinstance(item, Rejected)} == {
        Code.OUTSIDE_WINDOW: "2 stored pages were passed over",
        Code.FETCH_WRONG_TYPE: "1 stored pages were passed over",
    }


@pytest.mark.parametrize("packed", [True, False])
async def test_a_jsonl_archive_and_its_damaged_lines(tmp_path: Path, packed: bool) -> None:
    lines = [
        json.dumps({"url": "https://x.example/a", "date": "2026-03-04", "html": PAGE.decode()}),
        "{broken",
        json.dumps({"url": "https://x.example/no-html"}),
        json.dumps({"url": "https://y.example/b", "date": "2026-03-04", "html": PAGE.decode()}),
        json.dumps({"url": "https://x.example/old", "date": "2020-03-04", "html": PAGE.decode()}),
    ]
    data = "\n".join(lines).encode()
    place = tmp_path / ("news.jsonl.gz" if packed else "news.jsonl")
    place.write_bytes(gzip.compress(data) if packed else data)
    row = SourceSection(name="j", type="archive", url=str(place), options={"hosts": ["x.example"]})
    found = await links_of(row, lambda _: Code.FETCH_FAILED, tmp_path / "blobs")
    assert [item.url for item in found if isinstance(item, Link)] == ["https://x.example/a"]
    assert [item.code for item in found if isinstance(item, Rejected)] == [Code.OUTSIDE_WINDOW]


async def test_archives_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty.warc").write_bytes(b"")
    (tmp_path / "other.bin").write_bytes(b"\x00\x01\x02")
    (tmp_path / "cut.warc.gz").write_bytes(
        warc([("https://x.example/a", "2026-03-04T10:00:00Z", PAGE * 50, "200 OK")])[:200]
    )
    for name in ("missing.warc", "empty.warc", "other.bin", "cut.warc.gz"):
        row = SourceSection(name="a", type="archive", url=str(tmp_path / name))
        with pytest.raises(SourceError):
            await links_of(row, lambda _: Code.FETCH_FAILED, tmp_path / "blobs")


async def test_what_was_read_before_a_damage_is_kept_and_the_damage_is_told(tmp_path: Path) -> None:
    data = warc([(f"https://x.example/{n}", "2026-03-04T10:00:00Z", PAGE * (n + 1), "200 OK") for n in range(3)])
    (tmp_path / "cut.warc.gz").write_bytes(data[:-40])
    row = SourceSection(name="cc", type="archive", url=str(tmp_path / "cut.warc.gz"))
    found = await links_of(row, lambda _: Code.FETCH_FAILED, tmp_path / "blobs")
    assert [item.url.rsplit("/", 1)[-1] for item in found if isinstance(item, Link)] == ["0", "1"]
    (lost,) = [item for item in found if isinstance(item, Rejected)]
    assert (lost.item, lost.code) == ("cut.warc.gz (after 2 pages)", Code.SOURCE_UNREACHABLE)


@pytest.mark.parametrize("kind", ["warc", "jsonl"])
def test_an_archive_of_any_length_takes_the_memory_of_one_page(tmp_path: Path, kind: str) -> None:
    """40 MB of pages, 200 kB each, made while they are read."""
    filler = os.urandom(100_000).hex()

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.left, self.rest = 200, b""

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            while not self.rest and self.left:
                self.left -= 1
                html = f"<html><body><p>{self.left}</p>{filler}</body></html>"
                url = f"https://x.example/{self.left}"
                if kind == "warc":
                    self.rest = warc([(url, "2026-03-04T10:00:00Z", html.encode(), "200 OK")], packed=False)
                else:
                    self.rest = (json.dumps({"url": url, "html": html}) + "\n").encode()
            count = min(len(buffer), len(self.rest))
            buffer[:count], self.rest = self.rest[:count], self.rest[count:]
            return count

    tracemalloc.start()
    try:
        pages = sum(1 for _ in stored_pages(Endless(), f"a.{kind}"))  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pages == 200
    assert peak < 4_000_000


async def test_lines_that_no_page_has_and_addresses_that_are_none_are_passed_over(tmp_path: Path) -> None:
    endless = b'{"url": "https://x.example/long", "html": "' + b"x" * 21_000_000 + b'"}'
    lines = [
        endless,
        json.dumps({"url": "https://x.example/a", "html": PAGE.decode()}).encode(),
        json.dumps({"url": "javascript:void(0)", "html": PAGE.decode()}).encode(),
        json.dumps({"url": "", "html": PAGE.decode()}).encode(),
        json.dumps([1, 2]).encode(),
        b"\xff\xfe",
        json.dumps({"url": "https://x.example/b", "html": PAGE.decode()}).encode(),
    ]
    (tmp_path / "news.jsonl").write_bytes(b"\n".join(lines))
    row = SourceSection(name="j", type="archive", url=str(tmp_path / "news.jsonl"))
    found = await links_of(row, lambda _: Code.FETCH_FAILED, tmp_path / "blobs")
    assert [item.url for item in found if isinstance(item, Link)] == ["https://x.example/a", "https://x.example/b"]
    assert [(item.code, item.item) for item in found if isinstance(item, Rejected)] == [
        (Code.FETCH_BAD_URL, "news.jsonl (2 pages)")
    ]
    with pytest.raises(SourceError):
        await links_of(SourceSection(name="j", type="archive", url=str(tmp_path)), lambda _: Code.FETCH_FAILED)

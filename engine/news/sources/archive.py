"""`type = "archive"`: pages that someone stored: WARC files (as CC-NEWS has them) and JSONL of url, date, html.

The way back without asking publishers again. Read as a stream, one page in memory at a time; the pages of the window
go to the blobs, so that `collect` needs no network for them. `url` is a file or a web address; `.gz` is unpacked.

Options: `lag_days` (pages stored up to so many days after the window may still belong to it, default 7), `hosts` (only
pages of these host names).
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

from engine.core.config import CollectSection, SourceSection
from engine.core.schema import Code, DateWitness, Link, Rejected, Window
from engine.news.dates import parse_date
from engine.news.deps import NewsDeps, Streamer
from engine.news.page.witnesses import WEAK, witness
from engine.news.sources.base import SourceError, drop, latest_of, outside
from engine.news.sources.options import texts
from engine.web.bodies import MAX_BYTES, check_page
from engine.web.errors import FetchError
from engine.web.pipe import pipe
from engine.web.urls import host_of


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page of an archive; `stored` is when it was saved (WARC), `told` what the archive says of its date."""

    url: str
    body: bytes
    content_type: str = ""
    stored: datetime | None = None
    told: str = ""


class ArchiveSource:
    """Links whose pages lie in the blobs already (`Link.html_sha256`)."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]:
        if row.url.startswith(("http://", "https://")):
            if not isinstance(deps.fetcher, Streamer):
                raise SourceError(Code.SOURCE_UNREACHABLE, "this fetcher cannot stream an archive")
            try:
                async with pipe(deps.fetcher.stream(row.url)) as handle:
                    return await asyncio.to_thread(read_archive, handle, row.url, window, row, deps)
            except FetchError as error:
                raise SourceError(Code.SOURCE_UNREACHABLE, f"{error.code.value}: {error.detail}") from error
        return await asyncio.to_thread(_read_local, Path(row.url), window, row, deps)


def _read_local(path: Path, window: Window, row: SourceSection, deps: NewsDeps) -> list[Link | Rejected]:
    try:
        with path.open("rb") as handle:
            return read_archive(handle, path.name, window, row, deps)
    except OSError as error:
        raise SourceError(Code.SOURCE_UNREACHABLE, f"the archive {path} cannot be read: {error.strerror}") from error


def read_archive(
    handle: IO[bytes], name: str, window: Window, row: SourceSection, deps: NewsDeps
) -> list[Link | Rejected]:
    """Links of the window's pages. Pages of other times and hosts are counted in one `Rejected` per reason, since an
    archive holds far more than a week. Raises `SourceError` for a file that is neither WARC nor JSONL."""
    lag = timedelta(days=int(row.options.get("lag_days", 7)))
    hosts = frozenset(host.lower().removeprefix("www.") for host in texts(row.options.get("hosts", ())))
    found: list[Link | Rejected] = []
    passed: Counter[Code] = Counter()
    for page in _whole(stored_pages(handle, name), name, row, found):
        if hosts and host_of(page.url).removeprefix("www.") not in hosts:
            continue
        if not page.url.startswith(("http://", "https://")):
            passed[Code.FETCH_BAD_URL] += 1
            continue
        if page.stored is not None and not window.start <= page.stored < window.end + lag:
            passed[Code.OUTSIDE_WINDOW] += 1
            continue
        try:
            check_page(page.body)
        except FetchError:
            passed[Code.FETCH_WRONG_TYPE] += 1
            continue
        witnesses: list[DateWitness] = []
        if read := parse_date(page.told, latest=latest_of(window)):
            witnesses.append(witness("api", read, page.told, note=WEAK))
        if outside(witnesses, window):
            passed[Code.OUTSIDE_WINDOW] += 1
            continue
        if page.stored is not None:
            witnesses.append(DateWitness(kind="archive", value=page.stored, raw=page.stored.isoformat()))
        found.append(
            Link(
                url=page.url,
                source=row.name,
                source_type="archive",
                publisher=row.publisher,
                section=row.section,
                witnesses=tuple(witnesses),
                html_sha256=deps.blobs.put(page.body, "html"),
                content_type=page.content_type,
            )
        )
    for code, count in sorted(passed.items()):
        found.append(drop(f"{name} ({count} pages)", row, code, f"{count} stored pages were passed over"))
    return found


def _whole(
    pages: Iterator[StoredPage], name: str, row: SourceSection, found: list[Link | Rejected]
) -> Iterator[StoredPage]:
    """The pages up to a damage, which is told in `found`. A file that begins damaged is a failure of the source."""
    count = 0
    try:
        for page in pages:
            count += 1
            yield page
    except SourceError as error:
        if not count:
            raise
        found.append(drop(f"{name} (after {count} pages)", row, error.code, error.detail))


def stored_pages(handle: IO[bytes], name: str) -> Iterator[StoredPage]:
    """Pages of a WARC or JSONL stream, one at a time; damaged lines and records of other kinds are passed over."""
    buffered = handle if isinstance(handle, io.BufferedReader) else io.BufferedReader(handle)  # type: ignore[type-var]
    head = buffered.peek(16)[:16]
    if not head:
        raise SourceError(Code.SOURCE_NOT_A_FEED, "the archive is empty")
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(".warc") or head.startswith(b"WARC/"):
        yield from _warc(buffered)
    elif plain.endswith((".jsonl", ".ndjson", ".json")) or head.startswith(b"{"):
        lines: Any = gzip.GzipFile(fileobj=buffered) if head.startswith(b"\x1f\x8b") else buffered
        yield from _jsonl(lines)
    else:
        raise SourceError(Code.SOURCE_NOT_A_FEED, "the archive is neither WARC nor JSONL")


def _warc(handle: IO[bytes]) -> Iterator[StoredPage]:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    count = 0
    try:
        for record in ArchiveIterator(handle):
            count += 1
            if record.rec_type != "response" or record.http_headers is None:
                continue
            if record.http_headers.get_statuscode() != "200":
                continue
            body = record.content_stream().read(MAX_BYTES["page"] + 1)
            if len(body) > MAX_BYTES["page"]:
                continue
            if getattr(record.raw_stream, "limit", 0) > 0:
                # warcio ends quietly where a file was cut
                raise EOFError(f"the record of {record.rec_headers.get_header('WARC-Target-URI')} is cut")
            stored = parse_date(record.rec_headers.get_header("WARC-Date") or "")
            yield StoredPage(
                url=str(record.rec_headers.get_header("WARC-Target-URI") or ""),
                body=body,
                content_type=str(record.http_headers.get_header("Content-Type") or ""),
                stored=stored.value if stored is not None else None,
            )
    except (ArchiveLoadFailed, EOFError, OSError) as error:
        raise SourceError(Code.SOURCE_UNREACHABLE, f"the archive is damaged: {error}") from error
    if not count:
        raise SourceError(Code.SOURCE_UNREACHABLE, "the archive is damaged: not one whole record")


def _bounded(handle: Any) -> Iterator[bytes]:
    """Lines of a length that a page can have; longer ones are passed over in parts."""
    limit = 2 * MAX_BYTES["page"]
    while line := handle.readline(limit):
        if line.endswith(b"\n") or len(line) < limit:
            yield line
            continue
        while (rest := handle.readline(limit)) and not rest.endswith(b"\n"):
            pass


def _jsonl(lines: Any) -> Iterator[StoredPage]:
    try:
        for line in _bounded(lines):
            try:
                raw = json.loads(line)
                url, html = str(raw["url"]), str(raw["html"])
            except (ValueError, KeyError, TypeError):
                continue
            yield StoredPage(
                url=url,
                body=html.encode("utf-8", errors="ignore"),
                content_type="text/html; charset=utf-8",
                told=str(raw.get("date") or ""),
            )
    except (EOFError, OSError) as error:
        raise SourceError(Code.SOURCE_UNREACHABLE, f"the archive is damaged: {error}") from error

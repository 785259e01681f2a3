"""Reading a body within its limits, as sent and unpacked, and telling by its bytes what it is.

Only gzip and deflate are asked for, because zlib can stop in the middle: a bomb never unfolds beyond the limit.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Literal

from engine.core.schema import Code
from engine.web.errors import FetchError

Kind = Literal["feed", "page", "image", "api"]

#: Largest unpacked body in bytes. Sitemaps may have 50 MB by their protocol; the median news page has 0.2 MB.
MAX_BYTES: dict[Kind, int] = {
    "feed": 52_428_800,
    "page": 10_000_000,
    "image": 30_000_000,
    "api": 30_000_000,
}
ACCEPT = {
    "feed": "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5",
    "page": "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
    "image": "image/jpeg, image/png, image/webp, image/avif, image/gif;q=0.8, */*;q=0.5",
    "api": "application/json, */*;q=0.5",
}

_NOT_PAGES = (
    (b"%PDF", "PDF"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"PK\x03\x04", "ZIP"),
    (b"RIFF", "RIFF"),
    (b"ID3", "MP3"),
    (b"\x1f\x8b", "gzip"),
    (b"OggS", "Ogg"),
    (b"\x00\x00\x00", "MP4"),
)


class DecodeError(Exception):
    """The body is not packed the way its header says."""


async def read_body(parts: AsyncIterator[bytes], *, encoding: str, limit: int, announced: str | None) -> bytes:
    """Unpack a body while it comes. Raises `FetchError(FETCH_TOO_LARGE)` as soon as a limit is passed, and
    `DecodeError`. `announced` is the Content-Length header."""
    if announced is not None and announced.strip().isdigit() and int(announced) > limit:
        raise FetchError(Code.FETCH_TOO_LARGE, f"{announced.strip()} bytes are announced, the limit is {limit}")
    unpack = _unpacker(encoding)
    out = bytearray()
    async for part in parts:
        while part:
            if unpack is None:
                out += part
                part = b""
            else:
                try:
                    out += unpack.decompress(part, limit + 1 - len(out))
                except zlib.error as error:
                    raise DecodeError(f"the body is not {encoding}") from error
                # what did not fit comes back here; after the end of the packed stream the rest is padding
                part = b"" if unpack.eof else unpack.unconsumed_tail
            if len(out) > limit:
                raise FetchError(Code.FETCH_TOO_LARGE, f"more than {limit} bytes")
    if unpack is not None and out and not unpack.eof:
        raise FetchError(Code.FETCH_TRUNCATED, f"the {encoding} body ends early")
    return bytes(out)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if name == "deflate":
        return zlib.decompressobj()
    raise DecodeError(f"the encoding '{name}' was not asked for")


def gunzip(data: bytes, *, limit: int = MAX_BYTES["feed"]) -> bytes:
    """Unpack a gzip file (a sitemap, a stored page). Raises `FetchError` if it is damaged or above `limit` bytes."""
    out = bytearray()
    rest = data
    while rest[:2] == b"\x1f\x8b":
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            out += unpack.decompress(rest, limit + 1 - len(out))
        except zlib.error as error:
            raise FetchError(Code.FETCH_FAILED, f"damaged gzip: {error}") from error
        if len(out) > limit:
            raise FetchError(Code.FETCH_TOO_LARGE, f"unpacks to more than {limit} bytes")
        if not unpack.eof:
            raise FetchError(Code.FETCH_TRUNCATED, "the gzip file ends early")
        rest = unpack.unused_data
    return bytes(out)


def check_page(body: bytes) -> None:
    """Refuse what is no HTML by its bytes. Raises `FetchError(FETCH_WRONG_TYPE)`."""
    head = body[:16]
    for magic, name in _NOT_PAGES:
        if head.startswith(magic):
            raise FetchError(Code.FETCH_WRONG_TYPE, f"the bytes are {name}, not a page")
    start = body[:8192]
    utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not body.strip():
        raise FetchError(Code.FETCH_WRONG_TYPE, "an empty body")
    if not utf16 and (b"<" not in start or start.lstrip()[:1] in (b"{", b"[")):
        raise FetchError(Code.FETCH_WRONG_TYPE, "the bytes are not HTML")

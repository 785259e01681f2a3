"""Bodies within limits, unpacked, and told apart by their bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.schema import Code
from engine.web.bodies import DecodeError, check_page, gunzip, read_body
from engine.web.errors import FetchError


async def parts(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=5000), st.integers(1, 700), st.sampled_from(["", "identity", "gzip", "deflate"]))
async def test_what_is_packed_comes_out_whole_however_it_is_cut(data: bytes, size: int, encoding: str) -> None:
    packed = {"gzip": gzip.compress(data), "deflate": zlib.compress(data)}.get(encoding, data)
    assert await read_body(parts(packed, size), encoding=encoding, limit=5000, announced=None) == data
    if len(data) > 10:
        with pytest.raises(FetchError) as caught:
            await read_body(parts(packed, size), encoding=encoding, limit=len(data) - 1, announced=None)
        assert caught.value.code is Code.FETCH_TOO_LARGE


async def test_unknown_encodings_and_cut_packing_are_told_apart() -> None:
    with pytest.raises(DecodeError):
        await read_body(parts(b"x"), encoding="br", limit=10, announced=None)
    with pytest.raises(FetchError) as caught:
        await read_body(parts(gzip.compress(b"x" * 5000)[:-9]), encoding="gzip", limit=9000, announced=None)
    assert caught.value.code is Code.FETCH_TRUNCATED


def test_gzip_files_of_several_members_unpack_within_a_limit() -> None:
    assert gunzip(gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    with pytest.raises(FetchError) as caught:
        gunzip(gzip.compress(b"\0" * 10_000_000), limit=1000)
    assert caught.value.code is Code.FETCH_TOO_LARGE
    for damaged in (gzip.compress(b"abc" * 100)[:-4], gzip.compress(b"abc" * 100)[:20] + b"\xff" * 20):
        with pytest.raises(FetchError):
            gunzip(damaged)


@pytest.mark.parametrize(
    "body",
    [b"<!doctype html><p>", b"\xff\xfe<\0h\0t\0m\0l\0>\0", b"  \n<html>", b"\xef\xbb\xbf<html>", b"text <b>bold</b>"],
)
def test_pages_are_pages(body: bytes) -> None:
    check_page(body)


@pytest.mark.parametrize(
    "body", [b"", b"  ", b"%PDF-1.4", b"\x89PNG\r\n", b"GIF89a<html>", b"plain text", b'[{"a":"<b>"}]', b"PK\x03\x04<"]
)
def test_other_things_are_not(body: bytes) -> None:
    with pytest.raises(FetchError) as caught:
        check_page(body)
    assert caught.value.code is Code.FETCH_WRONG_TYPE

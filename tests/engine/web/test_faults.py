"""A server with every fault, driven by chance: nothing hangs, nothing crashes, each loss has its code."""

from __future__ import annotations

import asyncio
import gzip
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loopback import Reply, Site

from engine.core.config import CollectSection
from engine.core.schema import Code
from engine.web.client import WebClient
from engine.web.errors import FetchError
from engine.web.requests import DARK_AFTER

PAGE = b"<html><body><p>news</p></body></html>"

FAULTS: dict[str, Reply] = {
    "good": Reply(PAGE),
    "slow": Reply(PAGE, first_s=0.15),
    "stalled": Reply(PAGE, first_s=30.0),
    "dripping": Reply(b"x" * 4000, drip_s=0.02),
    "reset": Reply(reset=True),
    "garbage": Reply(raw=b"\x00\x01\x02\r\n\r\n"),
    "half a head": Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Le"),
    "403": Reply(PAGE, 403),
    "429": Reply(PAGE, 429),
    "429 later": Reply(PAGE, 429, headers={"Retry-After": "3600"}),
    "429 nonsense": Reply(PAGE, 429, headers={"Retry-After": "soon"}),
    "503 date": Reply(PAGE, 503, headers={"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}),
    "circle": Reply(status=302, headers={"Location": "circle"}),
    "to private": Reply(status=301, headers={"Location": "http://10.0.0.7/x"}),
    "to metadata": Reply(status=302, headers={"Location": "http://169.254.169.254/latest/"}),
    "to nonsense": Reply(status=302, headers={"Location": "http://[::"}),
    "to nowhere": Reply(status=302),
    "short of its length": Reply(PAGE, length=9000),
    "longer than its length": Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + PAGE),
    "length nonsense": Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + PAGE),
    "bad chunks": Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n<html>"),
    "cut chunks": Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n<html>"),
    "bomb": Reply(gzip.compress(b"\0" * 60_000_000), headers={"Content-Encoding": "gzip"}),
    "not gzip": Reply(PAGE, headers={"Content-Encoding": "gzip"}),
    "cut gzip": Reply(gzip.compress(PAGE * 50)[:-9], headers={"Content-Encoding": "gzip"}),
    "brotli": Reply(PAGE, headers={"Content-Encoding": "br"}),
    "huge": Reply(b"x", length=10**12),
    "pdf": Reply(b"%PDF-1.7", headers={"Content-Type": "text/html"}),
    "empty": Reply(b""),
    "204": Reply(b"", 204),
    "304 unasked": Reply(b"", 304),
    "latin-1 header": Reply(PAGE, headers={"X-Name": "Åse"}),
}


def config(**changes: Any) -> CollectSection:
    values: dict[str, Any] = {
        "allow_hosts": ("127.0.0.1",),
        "per_host_delay_s": 0.0,
        "per_host": 16,
        "timeout_s": 0.6,
        "retries": 1,
        "obey_robots": False,
        "obey_ai_opt_out": False,
        **changes,
    }
    return CollectSection(**values)


async def outcomes(names: list[str], kind: Any, cache: Path | None) -> dict[str, Code | None]:
    routes = {f"/{index}/{name.replace(' ', '-')}": FAULTS[name] for index, name in enumerate(names)}
    async with Site(routes) as site:  # noqa: SIM117
        async with WebClient(config(), cache=cache) as client:

            async def one(path: str) -> Code | None:
                try:
                    await client.fetch(site.url(path), kind=kind)
                except FetchError as error:
                    return error.code
                return None

            found = await asyncio.gather(*(one(path) for path in routes))
    return dict(zip(names, found, strict=True))


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.web.retry.FIRST_WAIT_S", 0.01)


async def test_each_fault_alone_has_its_code() -> None:
    expected: dict[str, Code | None] = {
        "good": None,
        "slow": None,
        "stalled": Code.FETCH_TIMEOUT,
        "dripping": Code.FETCH_TIMEOUT,
        "reset": Code.FETCH_TRUNCATED,
        "garbage": Code.FETCH_TRUNCATED,
        "half a head": Code.FETCH_TRUNCATED,
        "403": Code.FETCH_FORBIDDEN,
        "429": Code.FETCH_RATE_LIMITED,
        "429 later": Code.FETCH_RATE_LIMITED,
        "429 nonsense": Code.FETCH_RATE_LIMITED,
        "503 date": Code.FETCH_SERVER_ERROR,
        "circle": Code.FETCH_REDIRECTS,
        "to private": Code.FETCH_PRIVATE_ADDRESS,
        "to metadata": Code.FETCH_PRIVATE_ADDRESS,
        "to nonsense": Code.FETCH_BAD_URL,
        "to nowhere": Code.FETCH_FAILED,
        "short of its length": Code.FETCH_TRUNCATED,
        "longer than its length": None,
        "length nonsense": Code.FETCH_TRUNCATED,
        "bad chunks": Code.FETCH_TRUNCATED,
        "cut chunks": Code.FETCH_TRUNCATED,
        "bomb": Code.FETCH_TOO_LARGE,
        "not gzip": Code.FETCH_FAILED,
        "cut gzip": Code.FETCH_TRUNCATED,
        "brotli": Code.FETCH_FAILED,
        "huge": Code.FETCH_TOO_LARGE,
        "pdf": Code.FETCH_WRONG_TYPE,
        "empty": Code.FETCH_WRONG_TYPE,
        "204": Code.FETCH_WRONG_TYPE,
        "304 unasked": Code.FETCH_FAILED,
        "latin-1 header": None,
    }
    assert set(expected) == set(FAULTS)
    got = {name: (await outcomes([name], "page", None))[name] for name in FAULTS}
    assert got == expected


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=10, unique=True),
    st.sampled_from(["page", "feed", "image", "api"]),
)
async def test_any_mix_of_faults_ends_in_time_and_the_good_ones_come_through(names: list[str], kind: str) -> None:
    start = time.monotonic()
    found = await outcomes(names, kind, None)
    # two tries of a stalled answer, their waits, and a busy machine
    assert time.monotonic() - start < 30
    assert all(code is None or isinstance(code, Code) for code in found.values())
    assert all(found[name] is None for name in ("good", "latin-1 header") if name in found)
    assert all(
        found[name] is not None for name in ("reset", "403", "circle", "to private", "huge", "bomb") if name in found
    )


async def test_a_host_that_never_answers_is_left_alone() -> None:
    async with Site({}) as site:
        port = site.port
    async with WebClient(config(retries=0), cache=None) as client:
        for n in range(DARK_AFTER):
            with pytest.raises(FetchError, match="no connection"):
                await client.fetch(f"http://127.0.0.1:{port}/{n}", kind="page")
        with pytest.raises(FetchError, match="times in a row"):
            await client.fetch(f"http://127.0.0.1:{port}/last", kind="page")


async def test_the_same_url_asked_for_twice_at_a_time_is_fetched_once() -> None:
    async with Site({"/a": Reply(PAGE, first_s=0.2)}) as site, WebClient(config(timeout_s=5.0), cache=None) as client:
        found = await asyncio.gather(*(client.fetch(site.url("/a"), kind="page") for _ in range(5)))
        assert len({id(item) for item in found}) == 1
    assert len(site.seen) == 1


async def test_a_stream_comes_in_parts_and_breaks_with_a_code() -> None:
    body = bytes(range(256)) * 4000
    routes = {
        "/a": Reply(body),
        "/moved": Reply(status=302, headers={"Location": "/a"}),
        "/cut": Reply(body, cut=300_000),
        "/gone": Reply(status=404),
        "/private": Reply(status=302, headers={"Location": "http://10.0.0.1/"}),
    }
    async with Site(routes) as site, WebClient(config(timeout_s=5.0), cache=None) as client:
        parts = [part async for part in client.stream(site.url("/moved"))]
        assert b"".join(parts) == body
        assert len(parts) > 1
        for path, code in (
            ("/cut", Code.FETCH_TRUNCATED),
            ("/gone", Code.FETCH_GONE),
            ("/private", Code.FETCH_PRIVATE_ADDRESS),
        ):
            with pytest.raises(FetchError) as caught:
                async for _ in client.stream(site.url(path)):
                    pass
            assert caught.value.code is code


async def test_a_certificate_that_cannot_be_trusted_is_final(tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(  # noqa: ASYNC221 - a second at most, in a test
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-out",
            cert,
            "-days",
            "1",
            "-subj",
            "/CN=127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with WebClient(config(timeout_s=5.0), cache=None) as client:
        with pytest.raises(FetchError) as caught:
            await client.fetch(f"https://127.0.0.1:{port}/", kind="page")
    server.close()
    assert caught.value.code is Code.FETCH_TLS
    assert "certificate" in caught.value.detail
    assert asked == 0


@pytest.mark.parametrize(("days", "code"), [(1, None), (-1, Code.FETCH_TLS)])
async def test_f09_an_expired_certificate_is_refused_even_of_a_trusted_issuer(
    days: int, code: Code | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    (tmp_path / "names.txt").write_text("subjectAltName=IP:127.0.0.1\n", encoding="ascii")
    for words in (
        "req -new -newkey rsa:2048 -nodes -keyout key.pem -out asked.csr -subj /CN=127.0.0.1",
        f"x509 -req -in asked.csr -signkey key.pem -days {days} -extfile names.txt -out cert.pem",
    ):
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True, cwd=tmp_path)  # noqa: ASYNC221
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\nConnection: close\r\n\r\n<html><body></body></html>")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with WebClient(config(timeout_s=5.0, obey_robots=False, obey_ai_opt_out=False), cache=None) as client:
        if code is None:
            found = await client.fetch(f"https://127.0.0.1:{port}/", kind="page")
            assert found.body == b"<html><body></body></html>"
        else:
            with pytest.raises(FetchError) as caught:
                await client.fetch(f"https://127.0.0.1:{port}/", kind="page")
            assert caught.value.code is code
            assert "expired" in caught.value.detail
    server.close()

"""Fetching and collecting over loopback: pages per second and memory, against bare httpx in the same run.

    python -m bench.news_fetch [--pages 2000] [--collect 500] [--extract 200] [--hosts 16]

A server process answers with article pages of about 30 KB on made-up hosts. Reported: the guarded client with robots,
pacing and cache switched on; the peer (httpx alone, same concurrency); reading the same pages in two processes, a core
each; the collect stage with extraction and photos, read in its own process and in two beside it; and how memory grows
over shards of 64 links.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import numpy as np

from bench.publisher import publisher
from engine.core.config import CollectSection
from engine.core.images import encode_jpeg
from engine.core.schema import Article, Link
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.collect import run
from engine.news.deps import NewsDeps
from engine.news.extract import extract_page
from engine.news.readers import readers
from engine.web.client import WebClient

WINDOW = parse_window("2026-03-02..2026-03-08")
SHARD = 64


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--collect", type=int, default=500, help="pages of the run with extraction; 0 leaves it out")
    parser.add_argument("--extract", type=int, default=200, help="pages read by each of two processes; 0 leaves it out")
    parser.add_argument("--hosts", type=int, default=16)
    found = parser.parse_args(argv)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    port = int(ours.recv())
    try:
        asyncio.run(_measure(port, found.pages, found.collect, found.hosts))
    finally:
        server.terminate()
        server.join()
    if found.extract:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            rates = pool.map(_read_pages, [found.extract] * 2)
        _say(f"reading pages in two processes: {sum(rates):.1f} pages/s ({rates[0]:.1f} and {rates[1]:.1f})")


def _read_pages(count: int) -> float:
    """Pages per second of one process, by the wall clock, after a warm-up page."""
    pages = [_page(n) for n in range(count)]
    extract_page(pages[0], "http://publisher0.example/n/0")
    start = time.perf_counter()
    for n, body in enumerate(pages):
        extract_page(body, f"http://publisher0.example/n/{n}")
    return count / (time.perf_counter() - start)


async def _measure(port: int, pages: int, collect: int, hosts: int) -> None:
    names = [f"publisher{n}.example" for n in range(hosts)]
    config = CollectSection(
        resolve=dict.fromkeys(names, f"127.0.0.1:{port}"),
        allow_hosts=tuple(names),
        per_host_delay_s=0.0,
        per_host=4,
        max_connections=32,
    )
    urls = [f"http://{names[n % hosts]}/n/{n}" for n in range(pages)]
    # the server makes a page when it is first asked for it: nobody shall be measured with that
    await _peer(port, pages)
    peer = await _peer(port, pages)
    with tempfile.TemporaryDirectory() as folder:
        start, used = time.perf_counter(), time.process_time()
        async with WebClient(config, cache=Path(folder)) as client:
            await asyncio.gather(*(client.fetch(url, kind="page") for url in urls))
        engine = pages / (time.perf_counter() - start)
        of_cpu = pages / (time.process_time() - used)
        start = time.perf_counter()
        async with WebClient(config, cache=Path(folder), offline=True) as client:
            await asyncio.gather(*(client.fetch(url, kind="page") for url in urls))
        replay = pages / (time.perf_counter() - start)
    _say(f"fetch: engine {engine:.0f} pages/s, bare httpx {peer:.0f} pages/s (ratio {engine / peer:.2f})")
    _say(f"fetch: {of_cpu:.0f} pages per second of one core")
    _say(f"replay from the cache, offline: {replay:.0f} pages/s")
    if collect:
        for processes in (1, 2):
            await _collect(config, names, collect, processes)


async def _peer(port: int, pages: int) -> float:
    places = asyncio.Semaphore(32)

    async def one(client: httpx.AsyncClient, n: int) -> None:
        async with places:
            (await client.get(f"http://127.0.0.1:{port}/n/{n}")).raise_for_status()

    start = time.perf_counter()
    async with httpx.AsyncClient(trust_env=False) as client:
        await asyncio.gather(*(one(client, n) for n in range(pages)))
    return pages / (time.perf_counter() - start)


async def _collect(config: CollectSection, names: Sequence[str], pages: int, processes: int) -> None:
    links = [
        Link(url=f"http://{names[n % len(names)]}/n/{n}", source="bench", source_type="feed", title="t")
        for n in range(pages)
    ]
    with tempfile.TemporaryDirectory() as folder:
        memory: list[int] = []
        kept = 0
        async with WebClient(config, cache=None) as client, readers(processes) as reading:
            # processes take a second or two to start, which is nothing for a window
            await asyncio.gather(*(reading.call(extract_page, _page(n), f"http://{names[0]}/") for n in range(8)))
            start, cpu = time.perf_counter(), time.process_time()
            deps = NewsDeps(fetcher=client, blobs=BlobStore(Path(folder)), readers=reading)
            for first in range(0, pages, SHARD):
                items = await run(links[first : first + SHARD], config, window=WINDOW, deps=deps)
                kept += sum(isinstance(item, Article) for item in items)
                memory.append(_rss_mb())
            wall, used = time.perf_counter() - start, time.process_time() - cpu
    half = memory[len(memory) // 2]
    _say(f"collect with photos, processes = {processes}: {pages / wall:.1f} pages/s wall, {kept} kept")
    _say(f"  {pages / used:.1f} pages per CPU second of the collecting process")
    _say(f"memory after the first shard {memory[0]} MB, half way {half} MB, at the end {memory[-1]} MB")


def _rss_mb() -> int:
    """Resident memory now, from the kernel; the peak where there is no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() // 1_000_000
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


@lru_cache(maxsize=20_000)
def _page(n: int) -> bytes:
    words = [
        "harbour",
        "granite",
        "lantern",
        "orchard",
        "meadow",
        "copper",
        "violin",
        "glacier",
        "saddle",
        "ribbon",
        "mayor",
        "bridge",
        "engineer",
        "ferry",
    ]
    random = np.random.default_rng(n)
    story = "".join(f"<p>{' '.join(words[i] for i in random.integers(0, len(words), 60))} {n}.</p>" for _ in range(12))
    links = "".join(
        f'<li class="teaser"><a href="/n/{n + i}">Read {words[i % len(words)]} {i}</a></li>' for i in range(400)
    )
    day = datetime(2026, 3, 2 + n % 7, 9, n % 60, tzinfo=UTC)
    return (
        f'<html lang="en"><head><title>Story {n}</title>'
        f'<meta property="article:published_time" content="{day.isoformat()}"><script type="application/ld+json">'
        f'{{"@type":"NewsArticle","datePublished":"{day.isoformat()}"}}</script></head>'
        f'<body><nav><ul>{links}</ul></nav><article><h1>Story {n}</h1><figure><img src="/i/{n % 50}.jpg"><figcaption>'
        f"The mayor on day {n}</figcaption></figure>{story}</article></body></html>"
    ).encode()


def _serve(pipe: Connection) -> None:
    random = np.random.default_rng(1)
    photos = []
    for _ in range(50):
        small = random.integers(0, 256, (8, 10, 3)).astype(np.uint8)
        photos.append(encode_jpeg(np.kron(small, np.ones((60, 60, 1), np.uint8)).astype(np.uint8)))

    server = publisher(_page, photos)
    pipe.send(server.server_address[1])
    server.serve_forever()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()

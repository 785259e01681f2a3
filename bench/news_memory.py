"""Memory of collecting a window, small against large: the whole stage over loopback, from sitemaps to the last record.

    python -m bench.news_memory [--small 1000] [--large 10000] [--hosts 16]

Each size runs in a process of its own, against a server process that makes short pages (3 kB, one photo each). Told are
the resident memory at the start, its peak while pages are collected, and its peak while the window is finished; then
how many bytes a page more costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.publisher import ABSENT, Answer, publisher

WINDOW = "2026-03-02..2026-03-08"
WORDS = re.findall(
    r"\w+", "harbour granite lantern orchard meadow copper violin glacier ribbon mayor bridge engineer ferry"
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--large", type=int, default=10000)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--one", type=int, default=0, help="used by the script itself: one size against --port")
    parser.add_argument("--port", type=int, default=0)
    found = parser.parse_args(argv)
    if found.one:
        print(json.dumps(_one(found.one, found.port, found.hosts)))
        return
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, found.hosts), daemon=True)
    server.start()
    port = str(ours.recv())
    try:
        told = []
        for pages in (found.small, found.large):
            ours.send(pages)
            command = [sys.executable, "-m", "bench.news_memory", "--one", str(pages), "--port", port]
            done = subprocess.run(
                [*command, "--hosts", str(found.hosts)], check=True, stdout=subprocess.PIPE, text=True
            )
            told.append(json.loads(done.stdout.splitlines()[-1]))
            _say("{pages} pages, {kept} kept, {wall:.0f} s: {start} MB at the start".format(**told[-1]))
            _say("  peak while collecting {collecting} MB, while finishing {finishing} MB".format(**told[-1]))
    finally:
        server.terminate()
        server.join()
    small, large = told
    for phase in ("collecting", "finishing"):
        more = (large[phase] - small[phase]) * 1e6 / max(1, large["pages"] - small["pages"])
        _say(f"{phase}: ratio {large[phase] / small[phase]:.2f}, {more:.0f} bytes for a page more")


def _one(pages: int, port: int, hosts: int) -> dict[str, float]:
    from engine.core.config import load_config
    from flows.run import run_for
    from flows.stages import collect

    names = [f"publisher{n}.example" for n in range(hosts)]
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(
            None,
            environ={},
            overrides={
                "home": folder,
                "source": [{"name": name, "type": "sitemap", "url": f"http://{name}/sitemap.xml"} for name in names],
                "collect": {
                    "resolve": dict.fromkeys(names, f"127.0.0.1:{port}"),
                    "allow_hosts": names,
                    "per_host_delay_s": 0.0,
                    "per_host": 4,
                },
            },
        )
        run = run_for(config, WINDOW)
        where = collect.place(run)
        start, began = _rss_mb(), time.perf_counter()
        peaks = {"collecting": 0, "finishing": 0}
        phase = "collecting"
        stop = threading.Event()

        def watch() -> None:
            shards = 0
            while not stop.wait(0.1):
                peaks[phase] = max(peaks[phase], _rss_mb())
                there = sum(1 for _ in (where.path / "shards").glob("*")) if phase == "collecting" else shards
                if there >= shards + 20:
                    shards = there
                    sys.stderr.write(f"  {shards * collect.SHARD_LINKS} pages: peak {peaks[phase]} MB\n")

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        finish = collect._finish

        def finishing(*args: Any, **more: Any) -> None:
            nonlocal phase
            phase = "finishing"
            finish(*args, **more)

        collect._finish = finishing
        asyncio.run(collect._collect(run, where))
        stop.set()
        thread.join()
        kept = where.funnel().kept
    return {"pages": pages, "kept": kept, "start": start, "wall": time.perf_counter() - began, **peaks}


def _rss_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 1_000_000


def _serve(pipe: Connection, hosts: int) -> None:
    from engine.core.images import encode_jpeg

    random = np.random.default_rng(1)
    photos = [
        encode_jpeg(np.kron(random.integers(0, 256, (5, 6, 3)), np.ones((50, 50, 1))).astype(np.uint8))
        for _ in range(50)
    ]
    count = [0]

    def feeds(path: str, host: str) -> Answer:
        if path.rsplit("/", 1)[-1] != "sitemap.xml":
            return ABSENT
        number = int((host or "publisher0").split(".")[0].removeprefix("publisher"))
        return 200, "text/xml", _sitemap(number, hosts, count[0])

    server = publisher(_page, photos, feeds)
    pipe.send(server.server_address[1])

    def sizes() -> None:
        while True:
            count[0] = int(pipe.recv())

    threading.Thread(target=sizes, daemon=True).start()
    server.serve_forever()


def _sitemap(host: int, hosts: int, pages: int) -> bytes:
    rows = "".join(
        f"<url><loc>http://publisher{host}.example/n/{n}</loc><lastmod>{_day(n)}</lastmod></url>"
        for n in range(host, pages, hosts)
    )
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()


def _day(n: int) -> str:
    return f"2026-03-0{2 + n % 7}T09:{n % 60:02d}:00Z"


def _page(n: int) -> bytes:
    random = np.random.default_rng(n)
    text = "".join(f"<p>{' '.join(WORDS[i] for i in random.integers(0, len(WORDS), 60))} {n}.</p>" for _ in range(6))
    return (
        f'<html lang="en"><head><title>Story {n}</title><meta property="article:published_time" content="{_day(n)}">'
        f'<script type="application/ld+json">{{"@type":"NewsArticle","datePublished":"{_day(n)}"}}</script></head>'
        f'<body><article><h1>Story {n}</h1><figure><img src="/i/{n % 50}.jpg"><figcaption>The mayor, day {n}'
        f"</figcaption></figure>{text}</article></body></html>"
    ).encode()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()

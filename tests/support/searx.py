"""A SearXNG instance on loopback with the pages and pictures that it finds: for every query a page of its own.

Each page says who did what was asked, is dated within the sample week, and links nothing. Queries are counted; `late_s`
makes each search take its time, `status` makes the service refuse.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
from PIL import Image

DATE = "2026-11-18T09:30:00+00:00"
_MORE = "Guests came from all over the county and stayed until the evening, and the council thanked everybody. " * 3


class Searx:
    """Use as a context manager; `queries` counts what was searched, text and images apart, once answered."""

    def __init__(self, *, late_s: float = 0.0) -> None:
        self.late_s = late_s
        self.status = 200
        self.queries: Counter[tuple[str, str]] = Counter()
        self.begun = 0
        self.lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                status, kind, body = owner.answer(self.path)
                try:
                    self.send_response(status)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    self.wfile.flush()
                except ConnectionError:
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.netloc}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/search":
            with self.lock:
                self.begun += 1
            time.sleep(self.late_s)
            if self.status != 200:
                return self.status, "text/plain", b"no"
            kind = "images" if query["categories"] == "images" else "text"
            with self.lock:
                self.queries[kind, query["q"]] += 1
            return 200, "application/json", json.dumps({"results": self._results(kind, query["q"])}).encode()
        if parts.path.startswith("/page/"):
            return 200, "text/html; charset=utf-8", _page(query["q"]).encode()
        if parts.path.startswith("/picture/"):
            return 200, "image/png", _picture(query["q"])
        return 404, "text/plain", b"nothing here"

    def _results(self, kind: str, asked: str) -> list[dict[str, Any]]:
        told = {"title": "News", "content": "", "publishedDate": DATE}
        where = f"{self.url}/page/1?q={quote(asked)}"
        if kind == "images":
            return [{**told, "url": where, "img_src": f"{self.url}/picture/{n}?q={quote(asked)}{n}"} for n in range(2)]
        return [{**told, "url": where}]


def _page(asked: str) -> str:
    linked = json.dumps({"@type": "NewsArticle", "datePublished": DATE, "headline": "A day in the county"})
    return (
        "<!DOCTYPE html><html lang='en'><head><title>A day in the county</title>"
        f"<meta property='article:published_time' content='{DATE}'>"
        f"<script type='application/ld+json'>{linked}</script></head><body><article><h1>A day in the county</h1>"
        f"<p>It is known that Mara Quist {asked}. She did so on a fine day and was seen by many.</p><p>{_MORE}</p>"
        f"<p>Otto Lind was there as well, and said a few words at the end. {_MORE}</p></article></body></html>"
    )


def _picture(asked: str) -> bytes:
    rng = np.random.default_rng(sum(asked.encode()))
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (240, 240, 3), dtype=np.uint8)).save(out, "PNG")
    return out.getvalue()

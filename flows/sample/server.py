"""The three sample publishers over real HTTP, on one loopback port, told apart by the Host header.

Used by the demo and by tests. Standard library only; it starts in a few milliseconds and ends with its context.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from flows.sample import pages
from flows.sample.articles import IMAGES, SITES, Site, Story, stories

TYPES = {".jpg": "image/jpeg", ".png": "image/png", ".gif": "image/gif"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, headers and body."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class SamplePublishers:
    """Context manager that serves the sample week. `port` is known inside; `hits` counts requests by URL."""

    def __init__(self, *, port: int = 0) -> None:
        self._wanted = port
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.hits: Counter[str] = Counter()
        self._sites = {site.host: site for site in SITES.values()}
        self._stories = {(story.site.host, story.path): story for story in stories()}

    @property
    def port(self) -> int:
        """The loopback port; only inside the context."""
        if self._server is None:
            raise RuntimeError("the sample publishers are not running: use them as a context manager")
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"publishers": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._wanted), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="sample-publishers", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    def answer(self, host: str, target: str) -> Answer:
        """What host and request target give; used by the handler, and by tests without a connection."""
        path = urlsplit(target).path
        with self._lock:
            self.hits[f"http://{host}{path}"] += 1
        site = self._sites.get(host)
        if site is None:
            return Answer(421, b"no such site here\n", {"Content-Type": "text/plain"})
        if story := self._stories.get((host, path)):
            return _story(story)
        if path.startswith("/images/"):
            return _image(PurePosixPath(path).name)
        return _other(site, path)


def _story(story: Story) -> Answer:
    if story.gone:
        return Answer(410, b"<h1>Withdrawn</h1>", {"Content-Type": "text/html; charset=utf-8"})
    return _text(pages.page(story), "text/html", encoding=story.encoding)


def _image(name: str) -> Answer:
    place = IMAGES / name
    if name.startswith(".") or not place.is_file():
        return Answer(404, b"no such picture\n", {"Content-Type": "text/plain"})
    kind = TYPES.get(place.suffix, "application/octet-stream")
    return Answer(200, place.read_bytes(), {"Content-Type": kind})


def _other(site: Site, path: str) -> Answer:
    listed = sorted(
        (story for story in stories() if story.site == site),
        key=lambda story: (story.published is None, str(story.published and story.published.timestamp()), story.slug),
        reverse=True,
    )
    if path == "/robots.txt":
        return _text(pages.robots(site), "text/plain")
    if path == site.list_path:
        render = {"rss": pages.rss, "atom": pages.atom, "sitemap": pages.news_sitemap}[site.list_kind]
        kind = {"rss": "application/rss+xml", "atom": "application/atom+xml", "sitemap": "application/xml"}
        return _text(render(site, listed), kind[site.list_kind])
    if path.startswith("/go/"):
        found = next((story for story in listed if story.slug == path.removeprefix("/go/")), None)
        if found is not None:
            return Answer(302, b"", {"Location": found.url})
    if path == "/":
        return _text(pages.front(site, site.name, listed), "text/html")
    if path == pages.SECTION_FRONT:
        chosen = [story for story in listed if story.section == "Technology"]
        return _text(pages.front(site, "Technology", chosen), "text/html")
    return Answer(404, b"<h1>Not found</h1>", {"Content-Type": "text/html; charset=utf-8"})


def _text(text: str, kind: str, *, encoding: str = "utf-8") -> Answer:
    return Answer(200, text.encode(encoding), {"Content-Type": f"{kind}; charset={encoding}"})


class _Handler(BaseHTTPRequestHandler):
    publishers: SamplePublishers
    protocol_version = "HTTP/1.1"
    # headers and body leave in one packet: Nagle's wait for an acknowledgement costs 40 ms otherwise
    wbufsize = -1
    disable_nagle_algorithm = True
    server_version = "SamplePublishers/1"
    sys_version = ""

    def do_GET(self) -> None:
        self._reply(with_body=True)

    def do_HEAD(self) -> None:
        self._reply(with_body=False)

    def _reply(self, *, with_body: bool) -> None:
        host = self.headers.get("Host", "").rsplit(":", 1)[0].lower()
        answer = self.publishers.answer(host, self.path)
        body, headers = answer.body, dict(answer.headers)
        plain = headers.get("Content-Type", "").startswith(("text/", "application/"))
        if plain and body and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, mtime=0)
            headers["Content-Encoding"] = "gzip"
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            try:
                self.wfile.write(body)
                self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                # the reader has read enough; nothing here needs it
                self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Requests are counted in `hits`, not printed."""

"""A loopback publisher for the benches of collecting: pages under /n/, pictures under /i/, whatever else it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Status, content type and body of an answer.
Answer = tuple[int, str, bytes]
ABSENT: Answer = (404, "text/plain", b"")


def publisher(
    page: Callable[[int], bytes],
    photos: Sequence[bytes],
    other: Callable[[str, str], Answer] = lambda path, host: ABSENT,
) -> ThreadingHTTPServer:
    """A server on a free port, not yet started: `page` makes the page of a number, `other` answers (path, host)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.rsplit("/", 1)[-1]
            if self.path.startswith("/n/"):
                status, kind, body = 200, "text/html; charset=utf-8", page(int(name))
            elif self.path.startswith("/i/"):
                status, kind, body = 200, "image/jpeg", photos[int(name.removesuffix(".jpg"))]
            else:
                status, kind, body = other(self.path, self.headers.get("Host") or "")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: ten thousand lines would be measured too."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)

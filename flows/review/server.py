"""The review page on loopback: a token in the address, 127.0.0.1 only, and no name but that one in the Host header.

Nothing is fetched from elsewhere: page, script, pictures and masks come from here, and a content policy keeps it so,
since what is shown was written by strangers. Other pages of the browser can neither read nor write here: they don't
know the token, and a foreign Host or Origin is refused.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from engine.core.errors import NestError
from flows.review.session import Session

LONGEST_BODY = 8_192
ASSETS = {
    "": ("page.html", "text/html"),
    "page.js": ("page.js", "text/javascript"),
    "page.css": ("page.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
form-action 'none'; frame-ancestors 'none'"
)


class ReviewServer(ThreadingHTTPServer):
    """Serves one session; `url` is the only address that answers. `done` is set when the page says it is finished."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, session: Session, *, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.done = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    protocol_version = "HTTP/1.1"
    # headers and body leave in one packet: Nagle's wait for an acknowledgement costs 40 ms otherwise
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """The terminal is the reviewer's; requests are not told there."""

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return
        if path in ASSETS:
            name, kind = ASSETS[path]
            data = (files("flows.review") / name).read_bytes()
            return self._answer(HTTPStatus.OK, data, f"{kind}; charset=utf-8")
        parts = path.split("/")
        session = self.server.session
        if parts == ["state"]:
            return self._json(session.state())
        number = int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() and len(parts[1]) < 7 else -1
        if not 0 <= number < len(session.rows):
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such row")
        if parts[0] == "row" and len(parts) == 2:
            return self._json({**session.row(number), "state": session.state(at=number)})
        if parts[0] in ("picture", "mask") and len(parts) == 3 and parts[2].isdecimal():
            row = session.rows[number]
            among = row.pictures if parts[0] == "picture" else row.overlays
            place = among[int(parts[2])] if int(parts[2]) < len(among) else None
            if place is not None:
                data = place.read_bytes()
                return self._answer(HTTPStatus.OK, data, _kind(data))
        self._refuse(HTTPStatus.NOT_FOUND, "there is nothing of that name")

    def do_POST(self) -> None:
        path = self._path()
        if path is None:
            return
        session = self.server.session
        try:
            told = self._body()
            if path == "verdict":
                at = session.say(
                    told.get("sample_id"),
                    told.get("verdict"),
                    answer=told.get("answer"),
                    comment=told.get("comment", ""),
                )
                return self._json(session.state(at=at))
            if path == "undo":
                return self._json(session.state(at=session.undo()))
            if path == "finish":
                self._json(session.state())
                self.server.done.set()
                return None
        except NestError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except ValueError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, f"not what the page sends: {error}")
        return self._refuse(HTTPStatus.NOT_FOUND, "there is nothing of that name")

    def _path(self) -> str | None:
        """What lies behind the token; None if the request was refused."""
        hosts = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in hosts or (origin and origin not in {f"http://{host}" for host in hosts}):
            self._refuse(HTTPStatus.FORBIDDEN, "this address answers to 127.0.0.1 only")
            return None
        _, token, *rest = (self.path.split("?")[0] + "/").split("/", 2)
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "open the address that the terminal shows")
            return None
        return rest[0].strip("/") if rest else ""

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self.close_connection = True
            raise ValueError("a body without a length, or one that is too long")
        found = json.loads(self.rfile.read(int(length)) or b"{}")
        if not isinstance(found, dict):
            raise ValueError("not an object")
        return found

    def _json(self, value: dict[str, Any]) -> None:
        self._answer(HTTPStatus.OK, json.dumps(value, default=str).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        # what was not read of the request must not be taken for the next one
        self.close_connection = True
        self._answer(status, json.dumps({"error": why}).encode(), "application/json")

    def _answer(self, status: HTTPStatus, data: bytes, kind: str) -> None:
        self.send_response(status)
        told = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        for name, value in told.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)


def _kind(data: bytes) -> str:
    """The type of a picture, from its first bytes."""
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png"
    if data[8:12] == b"WEBP":
        return "image/webp"
    return "image/gif" if data[:3] == b"GIF" else "application/octet-stream"

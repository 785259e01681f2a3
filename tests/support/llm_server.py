"""A real OpenAI-compatible HTTP server on loopback: scripted or written replies, latency, and counts of everything.

    with LlmServer() as server:                     # writes questions for whatever article it is sent
        config = LlmSection(base_url=server.url, model="test-model")

Replies come from `script` (an iterator's next item per request), else from `reply`, a function of the decoded body.
Counts are of what was sent completely; `seen` maps each distinct request body to how often it was answered.
"""

from __future__ import annotations

import hashlib
import json
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from support.llm_batches import Batches
from support.llm_writer import write_reply

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Scripted:
    """One answer of the server. `drop` closes the connection without any."""

    status: int = 200
    body: Body | str = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    delay_s: float = 0.0


def completion(
    text: str | None, *, finish: str = "stop", refusal: str | None = None, tokens: tuple[int, int] = (400, 120)
) -> Scripted:
    """A chat completion with that content."""
    return Scripted(body=completion_body(text, finish=finish, refusal=refusal, tokens=tokens))


def completion_body(
    text: str | None,
    *,
    finish: str = "stop",
    refusal: str | None = None,
    tokens: tuple[int, int] = (400, 120),
    model: str = "test-model",
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1772700000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
    }


def response_body(text: str, *, tokens: tuple[int, int] = (400, 120), model: str = "test-model") -> dict[str, Any]:
    """The same for /responses."""
    return {
        "id": "resp_0",
        "object": "response",
        "created_at": 1772700000,
        "model": model,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [
            {
                "id": "msg_0",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        ],
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)},
    }


class LlmServer:
    """The server; use as a context manager. All counters are guarded by `lock`."""

    def __init__(
        self,
        *,
        script: Iterable[Scripted] | None = None,
        reply: Callable[[Body], Scripted] | None = None,
        latency_s: float = 0.0,
        key: str = "test-key",
        port: int = 0,
        takes: tuple[str, ...] = ("json_schema", "json_object", "schema", "plain"),
        keep_bodies: bool = True,
    ) -> None:
        self.script = iter(script) if script is not None else None
        self.reply = reply
        self.latency_s = latency_s
        self.key = key
        self.takes = takes
        self.keep_bodies = keep_bodies
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.begun = 0
        self.answered = 0
        self.abandoned = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.batches = Batches(self._answer_in_batch)
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Base URL for the SDK."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> LlmServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # -- what a request is answered with

    def answer(self, path: str, body: dict[str, Any]) -> Scripted:
        refused = self._refused_format(body)
        if refused is not None:
            return refused
        if self.script is not None:
            with self.lock:
                found = next(self.script, None)
            return found or Scripted(500, {"error": {"message": "the script is at its end"}})
        if self.reply is not None:
            return self.reply(body)
        text, tokens = write_reply(body)
        make = response_body if path.endswith("/responses") else completion_body
        return Scripted(body=make(text, tokens=tokens, model=str(body.get("model"))))

    def _answer_in_batch(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        scripted = self.answer(path, body)
        return scripted.status, scripted.body

    def _refused_format(self, body: Body) -> Scripted | None:
        told = body.get("response_format") or (body.get("text") or {}).get("format") or {}
        kind = told.get("type", "plain")
        if kind not in self.takes:
            # the words of llama.cpp's server
            return Scripted(
                500,
                {"error": {"message": f"response_format.type: Input should be 'text' or 'json_object', got {kind}"}},
            )
        if kind == "json_object" and "schema" in told and "schema" not in self.takes:
            return Scripted(
                400, {"error": {"message": "Unknown parameter: 'response_format.schema'.", "code": "unknown_parameter"}}
            )
        return None

    def count(self, body: Body, scripted: Scripted, *, times: int = 1) -> None:
        """Count an answer; once less with `times` of -1, where it did not get through after all."""
        with self.lock:
            self.answered += times
            self.seen[digest(body)] += times
            if not self.seen[digest(body)]:
                del self.seen[digest(body)]
            usage = scripted.body.get("usage") if isinstance(scripted.body, Mapping) else None
            if scripted.status == 200 and usage:
                self.tokens_in += times * usage.get("prompt_tokens", usage.get("input_tokens", 0))
                self.tokens_out += times * usage.get("completion_tokens", usage.get("output_tokens", 0))


def digest(body: Body) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: LlmServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is nothing to report; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # headers and body leave in one packet: Nagle's wait for an acknowledgement costs 40 ms otherwise
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("content-length", "0"))
        raw = self.rfile.read(length)
        if len(raw) < length:  # the client was killed while it sent
            self.close_connection = True
            return
        if self.headers.get("authorization") != f"Bearer {owner.key}":
            told = self.headers.get("authorization", "")
            self.send(
                Scripted(401, {"error": {"message": f"Incorrect API key provided: {told}", "code": "invalid_api_key"}})
            )
            return
        path = self.path.removeprefix("/v1")
        if path in ("/chat/completions", "/responses", "/embeddings"):
            self.complete(path, json.loads(raw))
        else:
            self.other("POST", path, raw)

    def other(self, method: str, path: str, raw: bytes = b"") -> None:
        status, body = self.server.owner.batches.handle(method, path, raw, self.headers.get("content-type", ""))
        self.send(Scripted(status, body.decode() if isinstance(body, bytes) else body))

    def do_GET(self) -> None:
        path = self.path.removeprefix("/v1")
        if path == "/models":
            self.send(Scripted(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]}))
        else:
            self.other("GET", path)

    def complete(self, path: str, body: dict[str, Any]) -> None:
        owner = self.server.owner
        with owner.lock:
            owner.begun += 1
            owner.in_flight += 1
            owner.most_in_flight = max(owner.most_in_flight, owner.in_flight)
            if owner.keep_bodies:
                owner.bodies.append(body)
        try:
            begun = time.monotonic()
            scripted = owner.answer(path, body)
            rest = max(owner.latency_s, scripted.delay_s) - (time.monotonic() - begun)
            if rest > 0:
                time.sleep(rest)
        finally:
            with owner.lock:
                owner.in_flight -= 1
        if scripted.drop:
            self.close_connection = True
            self.connection.close()
            return
        if self.gone():
            with owner.lock:
                owner.abandoned += 1
            self.close_connection = True
            return
        # counted first: a client that has the answer must find it counted
        owner.count(body, scripted)
        if not self.send(scripted):
            owner.count(body, scripted, times=-1)

    def gone(self) -> bool:
        """Whether the client hung up meanwhile: what it cannot read is not counted as answered."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        if not ready:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def send(self, scripted: Scripted) -> bool:
        text = scripted.body if isinstance(scripted.body, str) else json.dumps(scripted.body)
        data = text.encode()
        try:
            self.send_response(scripted.status)
            named = {name.lower() for name in scripted.headers}
            for name, value in scripted.headers.items():
                self.send_header(name, value)
            if "content-type" not in named:
                self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return False
        return True

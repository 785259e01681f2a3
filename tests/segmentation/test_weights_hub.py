"""Weights from a Hub on loopback, with the real client: fetched once, found again without the Hub."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BODY = b"weights of a model" * 1000
SCRIPT = """
import sys
from pathlib import Path
from engine.core.errors import NestError
from segmentation import weights
try:
    path = weights.resolve_file(sys.argv[1], weights_dir=Path(sys.argv[2]), setting="mask_weights")
    print(path.stat().st_size)
except NestError as error:
    print(f"{type(error).__name__}: {error}")
    raise SystemExit(error.exit_code)
"""


class _Hub(BaseHTTPRequestHandler):
    gets: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        if "/resolve/" in self.path:
            type(self).gets.append(self.path)
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        there = self.path == f"/owner/name/resolve/{COMMIT}/sub/file.pth"
        self.send_response(200 if there else 404)
        if there:
            self.send_header("ETag", f'"{hashlib.sha256(BODY).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", str(len(BODY) if there else 0))
        self.end_headers()
        if body and there:
            self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """The tests' output is not the place for an access log."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    _Hub.gets = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def ask(spec: str, folder: Path, endpoint: str) -> tuple[int, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGINGFACE"))}
    env |= {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(folder / "home")}
    command = [sys.executable, "-c", SCRIPT, spec, str(folder / "weights")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout.strip()


def test_a_pinned_file_is_fetched_once_and_then_needs_no_hub(endpoint: str, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    spec = f"owner/name@{COMMIT}:sub/file.pth"
    assert ask(spec, tmp_path, endpoint) == (0, str(len(BODY)))
    assert len(_Hub.gets) == 1
    nobody = "http://127.0.0.1:9"
    assert ask(spec, tmp_path, nobody) == (0, str(len(BODY)))
    assert len(_Hub.gets) == 1
    code, said = ask(f"owner/name@{COMMIT}:absent.pth", tmp_path, endpoint)
    assert code == 2
    assert "the Hub has no owner/name" in said
    code, said = ask(f"owner/name@{COMMIT}:other.pth", tmp_path, nobody)
    assert code in (2, 3)
    assert "put the file other.pth into" in said

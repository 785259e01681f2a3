"""A Hub on loopback that serves the real `huggingface_hub` and `datasets` clients over HTTP.

    with LoopbackHub() as hub:
        push(folder, repo="news/{name}", token=hub.token, endpoint=hub.endpoint)
        hub.fail("commit", status=504, after=True)      # the next commit goes through, its answer is lost
        subprocess.run([...], env=hub.environ(tmp_path))     # another process with the real clients

It covers dataset repositories: create, delete, look up, list, commit with parent, tag, branch, refs, history, squash,
large files (LFS, also in parts) and their deletion for good, card validation, and download with ranges. It has no
Xet: `engine.snapshot` switches Xet off for any endpoint but huggingface.co, `environ()` sets HF_HUB_DISABLE_XET for
others. Faults are queued per kind of request with `fail`; `before` runs a function ahead of the next request of a
kind, for example to commit behind a client's back. `requests` counts requests by kind.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from support.hub_http import Handler
from support.hub_repos import HubError, Repo

WRITE_TOKEN = "hf_loopback_write"
READ_TOKEN = "hf_loopback_read"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request: an answer of `status`, or none at all if `drop`; `after` lets it take effect."""

    status: int = 500
    message: str = "Internal Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    drop: bool = False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    hub: LoopbackHub

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests and not worth a traceback."""


class LoopbackHub:
    """The server and its state; see the module."""

    def __init__(self, *, part_bytes: int = 5_000_000) -> None:
        self.token = WRITE_TOKEN
        self.read_token = READ_TOKEN
        self.part_bytes = part_bytes
        self.repos: dict[str, Repo] = {}
        self.requests: Counter[str] = Counter()
        self.log: list[str] = []
        self.lock = threading.RLock()
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._hooks: defaultdict[str, deque[Callable[[], None]]] = defaultdict(deque)
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    # -- for tests

    def fail(
        self,
        kind: str,
        *,
        times: int = 1,
        status: int = 500,
        message: str = "Internal Server Error",
        headers: dict[str, str] | None = None,
        after: bool = False,
        drop: bool = False,
    ) -> None:
        """Queue a fault for the next `times` requests of a kind: create, commit, tag, preupload, lfs-batch,
        lfs-upload, lfs-verify, info, tree, refs, resolve, squash, lfs-delete."""
        self._faults[kind].extend([Fault(status, message, headers or {}, after, drop)] * times)

    def before(self, kind: str, hook: Callable[[], None]) -> None:
        """Run a function once, ahead of the next request of a kind."""
        self._hooks[kind].append(hook)

    def repo(self, name: str) -> Repo:
        return self.repos[name]

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        """Content of every file of a repository at a revision."""
        repo = self.repos[name]
        return {path: repo.content(file) for path, file in repo.resolve(revision).tree.items()}

    def environ(self, home: Path) -> dict[str, str]:
        """Variables for another process that uses the real clients on this Hub."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": self.token,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }

    # -- for the request handler

    def take_fault(self, kind: str) -> Fault | None:
        with self.lock:
            self.requests[kind] += 1
            hook = self._hooks[kind].popleft() if self._hooks[kind] else None
            fault = self._faults[kind].popleft() if self._faults[kind] else None
        if hook:
            hook()
        return fault

    def find(self, name: str, token: str) -> Repo:
        """A repository as this token sees it; a private one does not exist for strangers."""
        repo = self.repos.get(name)
        if repo is None or (repo.private and token not in (self.token, self.read_token)):
            raise HubError(404, "Repository not found", "RepoNotFound")
        return repo

    def may_write(self, token: str) -> None:
        if token == self.read_token:
            raise HubError(403, "Forbidden: this token may only read")
        if token != self.token:
            raise HubError(401, "Invalid credentials in Authorization header")


def free_port() -> int:
    """A port nobody listens on, for a Hub that is not there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

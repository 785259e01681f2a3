"""What was fetched once, on disk, so that a window can be collected again without the network, byte for byte.

One file per kind and URL: a line of JSON (final URL, status, headers, or the failure), then the body. Failures are
kept too: an offline replay has to lose the same items for the same reasons. While the network is on, failures are
tried again and only bodies are reused. Not a place of record: `blobs` is; so nothing here is fsynced.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.core.protocols import Fetched
from engine.core.schema import Code, canonical_json
from engine.core.store.files import disk_error
from engine.web.errors import FetchError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class HttpCache:
    """Entries under one folder; `None` answers mean that there is no (readable) entry."""

    root: Path

    def path(self, kind: str, url: str) -> Path:
        name = hashlib.sha256(f"{kind}\n{url}".encode()).hexdigest()
        return self.root / name[:2] / f"{name}.http"

    def read(self, kind: str, url: str) -> Fetched | FetchError | None:
        """A response (`from_cache` true) or the failure that was met."""
        try:
            raw = self.path(kind, url).read_bytes()
        except OSError:
            return None
        line, _, body = raw.partition(b"\n")
        try:
            head = json.loads(line)
            if head["format"] != FORMAT or head["kind"] != kind or head["url"] != url:
                return None
            if head["failure"] is not None:
                return FetchError(Code(head["failure"]["code"]), str(head["failure"]["detail"]))
            if head["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            return Fetched(str(head["final"]), int(head["status"]), dict(head["headers"]), body, from_cache=True)
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, kind: str, url: str, fetched: Fetched) -> None:
        self._write(
            kind,
            url,
            {
                "final": fetched.url,
                "status": fetched.status,
                "headers": dict(fetched.headers),
                "sha256": hashlib.sha256(fetched.body).hexdigest(),
                "failure": None,
            },
            fetched.body,
        )

    def write_failure(self, kind: str, url: str, error: FetchError) -> None:
        """Remember a failure; a body from an earlier run is worth more and stays."""
        if isinstance(self.read(kind, url), Fetched):
            return
        self._write(kind, url, {"failure": {"code": error.code.value, "detail": error.detail}}, b"")

    def _write(self, kind: str, url: str, head: Mapping[str, object], body: bytes) -> None:
        path = self.path(kind, url)
        line = canonical_json({"format": FORMAT, "kind": kind, "url": url, **head}).encode()
        temporary = path.with_name(f".tmp-{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(line + b"\n" + body)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise disk_error(path, error) from error

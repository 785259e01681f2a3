"""Replies on disk by the digest of their request: a reply that was paid for is never asked for again.

A reply is written before anyone uses it, by a temporary file and one rename, so that a kill at any moment loses at
most what was still on the wire. Refusals and cut replies are kept too: they were paid, and asking the same again
gives the same. Failures of the server are not kept. No times, no keys, no addresses.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from engine.core.protocols import ChatReply, ChatRequest
from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes
from engine.core.store.files import TEMPORARY, disk_error

#: Raised when the meaning of a stored reply changes.
CACHE_VERSION = 1


def request_digest(request: ChatRequest, settings: Mapping[str, Any], *, attempt: int = 0) -> str:
    """64 hex digits of what decides the reply: the request without its purpose, the settings, and which try it is."""
    told = {
        "version": CACHE_VERSION,
        "system": request.system,
        "user": request.user,
        "schema": dict(request.schema) if request.schema is not None else None,
        "schema_name": request.schema_name,
        "images": [hashlib.sha256(image).hexdigest() for image in request.images],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "settings": dict(settings),
        "attempt": attempt,
    }
    return sha256_bytes(canonical_json(told).encode("utf-8", "surrogatepass"))


class ReplyCache:
    """A folder of replies, `<root>/3f/3fa1....json`. A damaged file counts as absent."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}.json"

    def get(self, digest: str) -> ChatReply | None:
        """The stored reply with `from_cache` set and nothing to pay, or None."""
        try:
            found = json.loads(self.path(digest).read_text(encoding="utf-8"))
            reply = ChatReply(**found["reply"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return replace(reply, from_cache=True, usd=0.0)

    def put(self, digest: str, reply: ChatReply, *, raw: Mapping[str, Any] | None = None) -> None:
        """Store a reply and the server's own body. Raises `TerminalError` where the disk says no."""
        told = {"reply": {item.name: getattr(reply, item.name) for item in fields(reply)}, "raw": raw}
        # lone surrogates in a raw body stay readable as ASCII escapes
        _write(self.path(digest), json.dumps(told, sort_keys=True).encode("ascii"))


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and at once: no fsync, which would hold up every reply by what the disk needs.

    A killed process loses nothing by that. A machine that loses power may lose the last replies; a file that is then
    empty or torn counts as absent and is asked for again.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}")
    try:
        try:
            temporary.write_bytes(data)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(path, error) from error

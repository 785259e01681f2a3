"""What is written down of a batch: its requests' digests, where it is, how far it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.errors import TerminalError
from engine.core.protocols import ChatRequest
from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes
from engine.llm import wire


@dataclass(frozen=True, slots=True)
class Submission:
    """One batch as written down, and how far it came.

    `requests` maps each digest to its schema's key in `schemas` ("" if it has none) and its guessed input tokens:
    what reading the reply needs. Texts and pictures are not kept twice.
    """

    key: str
    requests: dict[str, tuple[str, int]]
    schemas: dict[str, dict[str, Any]]
    batch_id: str = ""
    state: str = "prepared"
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.state in ("prepared", "submitted")


def submission_of(key: str, part: Mapping[str, ChatRequest]) -> Submission:
    """What is written down of requests before they go out."""
    schemas: dict[str, dict[str, Any]] = {}
    requests: dict[str, tuple[str, int]] = {}
    for digest, request in part.items():
        name = ""
        if request.schema is not None:
            name = sha256_bytes(canonical_json(dict(request.schema)).encode())[:16]
            schemas[name] = dict(request.schema)
        requests[digest] = (name, wire.estimate_tokens(request))
    return Submission(key, requests, schemas)


def read_submission(path: Path) -> Submission:
    """Raises `TerminalError` for a file that cannot be read."""
    try:
        return Submission(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise TerminalError(f"the batch record {path} cannot be read ({error}): remove it to submit again") from error

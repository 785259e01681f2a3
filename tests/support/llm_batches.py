"""The Batch API's endpoints for the loopback model server: files, batches, results, and what goes wrong with them.

A batch stays "in_progress" until `finish()`; `spoil` decides per custom_id what becomes of a request ("ok", "error",
"missing" for an expired one).
"""

from __future__ import annotations

import email.parser
import email.policy
import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

Answer = Callable[[str, dict[str, Any]], tuple[int, Any]]


class Batches:
    """State of the batch endpoints; thread-safe. `answer` gives status and body for one request's body."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.spoil: Callable[[str], str] = lambda custom_id: "ok"
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.requests = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self._lock = threading.Lock()

    def handle(self, method: str, path: str, raw: bytes, kind: str) -> tuple[int, Any]:
        """Status and body (an object, or bytes of a file)."""
        with self._lock:
            if method == "POST" and path == "/files":
                return 200, self._upload(raw, kind)
            if method == "POST" and path == "/batches":
                return 200, self._create(json.loads(raw))
            if match := re.fullmatch(r"/files/([\w-]+)/content", path):
                return (200, self.files[match[1]]) if match[1] in self.files else (404, _missing(path))
            if match := re.fullmatch(r"/batches/([\w-]+)", path):
                return (200, self.batches[match[1]]) if match[1] in self.batches else (404, _missing(path))
            if path.split("?")[0] == "/batches":
                data = list(self.batches.values())
                return 200, {"object": "list", "data": data, "has_more": False}
        return 404, _missing(path)

    def finish(self, *, status: str = "completed") -> None:
        """Work through all batches under way and end them with that status."""
        with self._lock:
            for batch in self.batches.values():
                if batch["status"] == "in_progress":
                    self._work(batch)
                    batch["status"] = status

    def _upload(self, raw: bytes, kind: str) -> dict[str, Any]:
        head = f"content-type: {kind}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + raw)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}  # type: ignore[attr-defined]
        data = parts["file"].get_payload(decode=True)
        name = f"file-{len(self.files)}"
        self.files[name] = data
        return {
            "id": name,
            "object": "file",
            "bytes": len(data),
            "created_at": 0,
            "filename": "x",
            "purpose": "batch",
            "status": "processed",
        }

    def _create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": body["endpoint"],
            "errors": None,
            "input_file_id": body["input_file_id"],
            "completion_window": body["completion_window"],
            "status": "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": 0,
            "metadata": body.get("metadata") or {},
        }
        return self.batches[name]

    def _work(self, batch: dict[str, Any]) -> None:
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        for line in self.files[batch["input_file_id"]].decode().splitlines():
            request = json.loads(line)
            fate = self.spoil(request["custom_id"])
            if fate == "missing":
                continue
            status, body = self.answer(request["url"].removeprefix("/v1"), request["body"])
            if fate == "error":
                status, body = 500, {"error": {"message": "the worker failed", "code": "server_error"}}
            told = {
                "id": "x",
                "custom_id": request["custom_id"],
                "response": {"status_code": status, "body": body},
                "error": None,
            }
            (good if status == 200 else bad).append(told)
            if status == 200:
                self.requests += 1
                usage = body["usage"]
                self.tokens_in += usage.get("prompt_tokens", usage.get("input_tokens"))
                self.tokens_out += usage.get("completion_tokens", usage.get("output_tokens"))
        for field, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                name = f"file-{len(self.files)}"
                self.files[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()
                batch[field] = name


def _missing(path: str) -> dict[str, Any]:
    return {"error": {"message": f"no such thing: {path}"}}

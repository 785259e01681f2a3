"""The labelled questions of WebSense, its figures, and a model that is wrong about them at a known rate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from support.llm_server import Body, Scripted, completion

FILE = Path(__file__).parents[1] / "data" / "websense" / "questions.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def figures(told: Sequence[tuple[bool, bool]]) -> tuple[float, float]:
    """Precision and recall of (said, needed)."""
    right = sum(said and needed for said, needed in told)
    return right / sum(said for said, _ in told), right / sum(needed for _, needed in told)


def judging(error_rate: float) -> Callable[[Body], Scripted]:
    """A model's replies, wrong where the digest of the question falls below the rate."""
    needed = {row["question"]: row["needs_search"] for row in ROWS}

    def reply(body: Body) -> Scripted:
        said = str(body["messages"][-1]["content"])
        question = next(q for q in sorted(needed, key=len, reverse=True) if q in said)
        wrong = int(hashlib.sha256(question.encode()).hexdigest()[:8], 16) / 2**32 < error_rate
        return completion(json.dumps({"needs_search": needed[question] != wrong, "reason": "as told"}))

    return reply

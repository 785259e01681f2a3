"""Every reply kind of the stored cases, through the real SDK against a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.articles import article
from support.llm_server import LlmServer, Scripted

from engine.core.config import AskSection, LlmSection
from engine.core.protocols import ChatRequest
from engine.core.schema import Question, Rejected
from engine.llm.client import OpenAIChat
from engine.questions.ask import AskDeps, reduce, run
from engine.questions.writers import make_writer

CASES = Path(__file__).parents[2] / "data" / "cases" / "31-llm-replies"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())
#: Our name for what the case calls a server error.
STATUS = {"server_error": "error"}
SCHEMA = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "entity": {"type": "string"},
                    "entity_type": {"type": "string", "enum": ["person", "organization", "place", "object"]},
                    "question": {"type": "string"},
                    "answer": {"type": "string"},
                    "evidence": {"type": "string"},
                },
                "required": ["entity", "entity_type", "question", "answer", "evidence"],
            },
        }
    },
    "required": ["pairs"],
}


def settings(server: LlmServer, **more: Any) -> LlmSection:
    return LlmSection(base_url=server.url, model="test-model", backoff_s=0.3, **more)


def stored(name: str) -> Scripted:
    return Scripted(body=json.loads((CASES / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", sorted(EXPECTED))
async def test_status_and_repetition(name: str, tmp_path: Path) -> None:
    """The first reply decides what comes next: a final one is asked for once, another one again, but not for ever."""
    expected = EXPECTED[name]
    with LlmServer(reply=lambda body: stored(name)) as server:
        async with OpenAIChat(settings(server), api_key="test-key", cache=tmp_path) as chat:
            reply = await chat.complete(ChatRequest("system", "user", SCHEMA))
        asked = server.answered
        limits = [body["max_tokens"] for body in server.bodies]
    assert reply.status == STATUS.get(expected["status"], expected["status"])
    assert (asked > 1) == expected["retry"]
    assert asked <= 3
    if reply.status == "truncated":
        assert limits == [1024, 2048, 4096]
    if reply.status != "ok":
        assert reply.data is None


@pytest.mark.parametrize("name", sorted(EXPECTED))
async def test_pairs_kept_by_the_whole_stage(name: str, tmp_path: Path) -> None:
    """Writer, checks and reduce keep exactly the pairs that the case says; anything else is a coded loss."""
    text = (CASES / "article.txt").read_text()
    story = article(text, "Mayor Ilse Brandvik, left, and the engineer Tomas Okafor at the bridge in Northvale.")
    config = AskSection(public_figures="off", max_questions_per_image=4)
    with LlmServer(reply=lambda body: stored(name)) as server:
        async with OpenAIChat(settings(server), api_key="test-key", cache=tmp_path) as chat:
            found = await run([story], config, deps=AskDeps(make_writer(config, chat=chat)))
            found = reduce([item for item in found if isinstance(item, Question)], config) + [
                item for item in found if isinstance(item, Rejected)
            ]
    kept = [item for item in found if isinstance(item, Question)]
    assert len(kept) == EXPECTED[name]["pairs"]
    assert {item.answer for item in kept} <= {"Ilse Brandvik", "Tomas Okafor"}
    if not kept:
        assert any(isinstance(item, Rejected) for item in found)


async def test_all_replies_together(tmp_path: Path) -> None:
    """13 pairs, 1 refused, 3 cut, 1 filtered, 2 invalid, 2 server errors over the 19 replies."""
    counts: dict[str, int] = {}
    for name in sorted(EXPECTED):
        with LlmServer(reply=lambda body, name=name: stored(name)) as server:
            async with OpenAIChat(settings(server), api_key="test-key", cache=tmp_path / name) as chat:
                reply = await chat.complete(ChatRequest("system", "user", SCHEMA))
        counts[reply.status] = counts.get(reply.status, 0) + 1
    assert counts == {"ok": 10, "refused": 1, "truncated": 3, "filtered": 1, "invalid": 2, "error": 2}

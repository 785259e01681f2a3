"""The whole stage by batches: rounds until nothing lacks, then a run that pays nothing live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.articles import article
from support.llm_server import LlmServer, Scripted, completion
from support.llm_writer import write_reply

from engine.core.config import AskSection, LlmSection
from engine.core.schema import Question
from engine.llm.batch import Progress
from engine.llm.client import OpenAIChat
from engine.questions.ask import run
from engine.questions.deps import blind_llm, make_deps
from engine.questions.planning import batch_round, plan_window

STORIES = [
    article(
        f"Tomas Okafor measured bridge number {n} of the coast road. Ilse Brandvik opened the road on day {n} of May.",
        "Ilse Brandvik, left, and Tomas Okafor at the bridge.",
        title=f"Bridge {n}",
    )
    for n in range(4)
]


def reply(body: Any) -> Scripted:
    """The first story's reply is cut once, so that a second round is needed for it."""
    if body["model"] == "old-model":
        return completion(json.dumps({"answer": "", "known": False}), tokens=(60, 9))
    text, tokens = write_reply(body)
    if "Title: Bridge 0" in body["messages"][1]["content"] and body["max_tokens"] == 1200:
        return completion(text[:80], finish="length", tokens=tokens)
    return completion(text, tokens=tokens)


async def one_round(config: AskSection, llm: LlmSection, home: Path) -> Progress:
    blind_config = blind_llm(config, llm)
    async with OpenAIChat(llm, api_key="test-key", cache=home / "cache") as chat:
        if blind_config is None:
            return await batch_round(STORIES, config, llm, chat=chat, folder=home / "batches")
        async with OpenAIChat(blind_config, api_key="test-key", cache=home / "cache") as blind:
            return await batch_round(STORIES, config, llm, chat=chat, blind=blind, folder=home / "batches")


@pytest.mark.parametrize(("blind_model", "rounds"), [("", 3), ("old-model", 4)])
async def test_rounds_until_nothing_lacks(tmp_path: Path, blind_model: str, rounds: int) -> None:
    config = AskSection(public_figures="off", blind_model=blind_model)
    with LlmServer(reply=reply) as server:
        llm = LlmSection(base_url=server.url, model="test-model")
        seen: list[Progress] = []
        while not seen or seen[-1].waiting:
            seen.append(await one_round(config, llm, tmp_path))
            server.batches.finish()
        assert len(seen) == rounds
        assert seen[0].submitted == 4
        assert seen[-1].submitted == 0
        async with OpenAIChat(llm, api_key="test-key", cache=tmp_path / "cache") as chat:
            section = blind_llm(config, llm)
            blind = OpenAIChat(section, api_key="test-key", cache=tmp_path / "cache") if section else None
            deps = make_deps(config, llm, chat=chat, blind=blind, articles=STORIES)
            found = await run(STORIES, config, deps=deps)
        assert server.answered == 0
    assert len([item for item in found if isinstance(item, Question)]) == 8


async def test_a_window_is_planned_before_anything_is_spent(tmp_path: Path) -> None:
    config = AskSection(public_figures="off", blind_model="old-model")
    llm = LlmSection(base_url="http://127.0.0.1:9/v1", model="test-model", prices={"test-model": (1.0, 4.0)})
    found = await plan_window(STORIES, config, llm, cache=tmp_path)
    live, blind = found.estimates(llm)
    halved, _ = found.estimates(llm, batch=True)
    assert (found.lacking, live.requests, blind.requests) == (4, 4, 0)
    assert live.usd is not None
    assert halved.usd == pytest.approx(live.usd / 2)
    assert blind.usd is None or blind.usd == 0

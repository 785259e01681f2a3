"""The retrieval baseline: a chat model's answer in the fixed prompt, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.blocks import BlockDetector, BlockMasker, scene
from support.llm_server import LlmServer, Scripted, completion

from engine.core.config import Config, LlmSection, ScoreSection
from engine.core.errors import ConfigError
from engine.core.protocols import EvalItem, SegmentRequest, SegmentResult
from engine.llm.client import OpenAIChat
from inference import predict
from inference.rose.search_chat import SearchChat
from inference.segmenters.builtin import LISA_WORDING
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.grounded_sam import GroundedSam
from inference.segmenters.registry import make

PICTURE = scene([((220, 20, 20), (5, 5, 60, 70))])
ITEM = EvalItem("s1", "Which person in the image won the regatta?", (PICTURE,))
PARTS = InferenceDeps(make_detector=lambda _: BlockDetector(), make_mask_model=lambda _: BlockMasker())


class Hearing(GroundedSam):
    """Keeps the prompts it is given."""

    def __init__(self) -> None:
        super().__init__(BlockDetector(), BlockMasker(), name="hearing")
        self.heard: list[str] = []

    def segment(self, requests: list[SegmentRequest]) -> list[SegmentResult]:  # type: ignore[override]
        self.heard += [request.prompt for request in requests]
        return super().segment(requests)


@pytest.mark.parametrize(
    ("reply", "answer", "prompt"),
    [
        (completion(" Mara Quist.\n"), "Mara Quist", "Please segment Mara Quist."),
        (completion("unknown"), None, LISA_WORDING.ask(ITEM.question)),
        (completion(None, refusal="no"), None, LISA_WORDING.ask(ITEM.question)),
    ],
)
async def test_the_answer_goes_into_the_fixed_prompt(
    tmp_path: Path, reply: Scripted, answer: str | None, prompt: str
) -> None:
    hearing = Hearing()
    with LlmServer(reply=lambda _: reply) as server:
        section = LlmSection(base_url=server.url, model="searcher", prices={"searcher": (1.0, 1.0)})
        async with OpenAIChat(section, api_key="test-key", cache=tmp_path) as chat:
            runner = SearchChat(hearing, chat, wording=LISA_WORDING)
            found, timings = await predict.run([ITEM], ScoreSection(), deps=predict.PredictDeps(runner))
    assert hearing.heard == [prompt]
    assert found[0].answer == answer
    assert found[0].trace[0].module == "search_chat"
    # the model searches today's web by itself, and the record says so
    assert found[0].trace[0].values["bounded"] == "no"
    assert sum(timing.usd for timing in timings) > 0


async def test_it_is_made_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a chat model that searches"):
        make("search-chat:portable", Config(), deps=PARTS)
    with LlmServer(reply=lambda _: completion("Mara Quist")) as server:
        section = LlmSection(base_url=server.url, model="searcher")
        async with OpenAIChat(section, api_key="test-key", cache=tmp_path) as chat:
            runner = make("search-chat:portable", Config(), deps=replace(PARTS, search_chat=chat))
            (found,) = await runner.run([ITEM])
    assert runner.name == "search-chat:portable"
    assert found.answer == "Mara Quist"
    assert found.masks[0] is not None

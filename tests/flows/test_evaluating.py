"""What each segmenter is given: nothing it does not ask for, the model that its name says, and no key when offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.core.config import Config
from engine.core.store import Home
from engine.llm.client import OpenAIChat
from engine.llm.offline import RecordedChat
from flows.evaluating import inference_deps
from inference.segmenters.deps import InferenceDeps

CONFIG: dict[str, Any] = {
    "llm": {"model": "plain", "base_url": "http://127.0.0.1:9/v1"},
    "rose": {"search": ["wikipedia"], "embedder": "openai", "embed_model": "embed-1"},
    "score": {
        "options": {"search-chat": {"model": "searcher"}, "seg-zero": {"model": "seer"}},
        "endpoints": {"seg-zero": "http://127.0.0.1:8/v1"},
    },
}


async def given(name: str, home: Path, **changes: dict[str, Any]) -> InferenceDeps:
    told = {key: {**CONFIG.get(key, {}), **changes.get(key, {})} for key in (*CONFIG, *changes)}
    async with inference_deps(Config.model_validate(told), Home(home), None, name=name) as deps:
        return deps


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")


def names(deps: InferenceDeps) -> dict[str, str]:
    parts = ("search", "chat", "search_chat", "vision_chat", "seeing_chat", "text_embedder")
    return {part: getattr(deps, part).name for part in parts if getattr(deps, part) is not None}


ROSE = {"search": "wikipedia", "chat": "plain", "text_embedder": "openai:embed-1"}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("portable", {}),
        ("files:/a:b", {}),
        ("remote:http://127.0.0.1:1", {}),
        ("rose:portable", ROSE),
        ("rose-irag-vpe:lisa", ROSE),
        ("search-chat:portable", {"search_chat": "searcher"}),
        ("seg-zero", {"vision_chat": "seer"}),
        ("rose:seg-zero", {**ROSE, "vision_chat": "seer"}),
        # the ordinary model does not see, and no other is named
        ("llmseg", {}),
        # what a plugin needs is not known
        ("mine:fast", ROSE),
    ],
)
async def test_each_gets_what_its_name_asks_for(name: str, wanted: dict[str, str], tmp_path: Path) -> None:
    assert names(await given(name, tmp_path)) == wanted


async def test_a_model_that_sees_is_given_to_those_that_ask_for_one(tmp_path: Path) -> None:
    sees = {"llm": {"sees_images": True}}
    assert names(await given("llmseg", tmp_path, **sees)) == {"vision_chat": "plain"}
    assert names(await given("rose:portable", tmp_path, **sees)) == {**ROSE, "seeing_chat": "plain"}
    deps = await given("seg-zero", tmp_path, **sees)
    assert isinstance(deps.vision_chat, OpenAIChat)
    assert (deps.vision_chat.endpoint.url, deps.vision_chat.sees_images) == ("http://127.0.0.1:8/v1", True)


async def test_the_ordinary_model_is_no_search_model(tmp_path: Path) -> None:
    assert names(await given("search-chat:portable", tmp_path, score={"options": {}})) == {}


async def test_without_a_key_only_records_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert names(await given("rose:portable", tmp_path)) == {"search": "wikipedia"}
    offline = await given("rose:seg-zero", tmp_path, score={"offline": True})
    assert names(offline) == {**ROSE, "vision_chat": "seer"}
    assert isinstance(offline.chat, RecordedChat)
    assert isinstance(offline.vision_chat, RecordedChat)

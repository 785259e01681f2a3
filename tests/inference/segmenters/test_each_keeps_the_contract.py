"""Every segmenter of the table, made by its name, against the contract: alone and inside ROSE."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.blocks import BlockDetector, BlockMasker, ColourEmbedder, scene
from support.llm_server import Body, LlmServer, Scripted, completion
from support.segmenter_server import helper, running
from support.shapes import SIDE, circle_points
from support.slow_search import SlowSearch

from engine.core.config import AnnotateSection, Config, LlmSection, RoseSection, ScoreSection
from engine.core.masks import encode_png
from engine.core.protocols import EvalItem, Segmenter, SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from engine.llm.client import OpenAIChat
from inference import predict
from inference.segmenters.bridge import note_loop
from inference.segmenters.conform import check_segmenter
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import BUILT_IN, build, make

RED, BLUE = (220, 20, 20), (20, 20, 220)
WIDE = scene([(RED, (5, 5, 60, 70)), (BLUE, (80, 20, 110, 60))])
TALL = scene([(BLUE, (10, 20, 50, 120))], size=(140, 60))
QUESTION = "Which person in the image won the harbour regatta?"
ITEMS = [EvalItem("a", QUESTION, (WIDE, TALL)), EvalItem("b", "Which product was shown?", (WIDE,))]
BLOCKS = InferenceDeps(
    search=SlowSearch(latency_s=0.0),
    make_detector=lambda _: BlockDetector(),
    make_mask_model=lambda _: BlockMasker(),
    make_embedder=lambda _: ColourEmbedder(),
)
EXTRACT = RoseSection(answerer="extract")
Setup = Callable[[Path], tuple[Config, InferenceDeps]]


def plain(_: Path) -> tuple[Config, InferenceDeps]:
    return Config(rose=EXTRACT), BLOCKS


def family(name: str) -> Setup:
    def setup(folder: Path) -> tuple[Config, InferenceDeps]:
        pytest.importorskip("torch")
        pytest.importorskip("segment_anything")
        from support.tiny_models import write_family

        where = write_family(folder, "lisa" if name == "lisa" else "sesame_read")
        score = ScoreSection(weights={name: str(where)}, device="cpu", options={name: {"max_new_tokens": 6}})
        return Config(score=score, rose=EXTRACT), replace(BLOCKS, weights_dir=folder)

    return setup


def sam2(folder: Path) -> tuple[Config, InferenceDeps]:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_hf import write_sam2

    score = ScoreSection(weights={"sam2": str(write_sam2(folder / "sam2"))})
    config = Config(score=score, rose=EXTRACT, annotate=AnnotateSection(device="cpu"))
    # the mask model is the real one, from the tiny folder
    return config, replace(BLOCKS, make_mask_model=None, weights_dir=folder)


def sam3(folder: Path) -> tuple[Config, InferenceDeps]:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_hf import write_sam3

    score = ScoreSection(
        weights={"sam3": str(write_sam3(folder / "sam3"))}, device="cpu", options={"sam3": {"threshold": 0.0}}
    )
    return Config(score=score, rose=EXTRACT), replace(BLOCKS, weights_dir=folder)


def served(name: str) -> Setup:
    def setup(folder: Path) -> tuple[Config, InferenceDeps]:
        return Config(score=ScoreSection(endpoints={name: folder.joinpath("url").read_text()}), rose=EXTRACT), BLOCKS

    return setup


SETUPS: dict[str, Setup] = {
    "portable": lambda _: (Config(rose=EXTRACT), InferenceDeps(search=SlowSearch(latency_s=0.0))),
    "grounded-sam": plain,
    **{name: family(name) for name in ("lisa", "sesame", "read")},
    "sam2": sam2,
    "sam3": sam3,
    "seg-zero": plain,
    "llmseg": plain,
    **{name: served(name) for name in ("remote", "seem", "gres", "cris")},
}


def eyes(body: Body) -> Scripted:
    """A vision model that boxes and traces the middle of whatever it is shown."""
    said = json.dumps(body["messages"])
    if "point inside it" in said:
        return completion('<answer>[{"bbox_2d": [84, 84, 700, 700], "point_2d": [200, 300]}]</answer>')
    if "bounding box" in said:
        return completion('[{"bbox_2d": [200, 200, 800, 800]}]')
    points = (circle_points(80, 12) / SIDE * 1000).clip(0, 1000).tolist()
    outlines = [{"points": points, "corners": [], "hole": False}]
    return completion(json.dumps({"done": True, "outlines": outlines}))


def reds(_: object, image: np.ndarray, prompt: str) -> np.ndarray:
    return image[..., 0] > image[..., 1]


@asynccontextmanager
async def world(name: str, folder: Path) -> AsyncIterator[tuple[Config, InferenceDeps]]:
    """What the segmenter needs: a model endpoint, a segmenter's server, weights."""
    async with AsyncExitStack() as stack:
        if name in ("remote", "seem", "gres", "cris"):
            url = stack.enter_context(running(helper().make_server(None, reds, {"name": name}, 0)))
            (folder / "url").write_text(url)
        config, deps = SETUPS[name](folder)
        if name in ("seg-zero", "llmseg"):
            server = stack.enter_context(LlmServer(reply=eyes))
            section = LlmSection(base_url=server.url, model="eyes", sees_images=True)
            chat = OpenAIChat(section, api_key="test-key", cache=folder / "llm")
            deps = replace(deps, vision_chat=await stack.enter_async_context(chat))
        yield config, deps


def test_the_list_is_whole() -> None:
    alone = {name for name, spec in BUILT_IN.items() if spec.argument != "SEGMENTER"}
    assert alone == {*SETUPS, "files"}


@pytest.mark.parametrize("name", sorted(SETUPS))
async def test_alone(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as (config, deps):
        built = build(name, config, deps=deps)
        assert isinstance(built.segmenter, Segmenter)
        asked = [
            SegmentRequest(image, built.wording.ask(question))
            for image, question in ((WIDE, QUESTION), (TALL, QUESTION), (WIDE, "Which product was shown?"))
        ]
        note_loop()
        assert await asyncio.to_thread(check_segmenter, built.segmenter, asked) == []


@pytest.mark.parametrize("name", sorted(SETUPS))
async def test_by_its_name_and_inside_rose(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as (config, deps):
        for full in (name, f"rose-irag-tpe:{name}"):
            runner = make(full, config, deps=deps)
            found, timings = await predict.run(ITEMS, config.score, deps=predict.PredictDeps(runner))
            assert [(one.sample_id, len(one.masks)) for one in found] == [("a", 2), ("b", 1)]
            for one in found:
                assert one.segmenter == full
                assert all(
                    (mask is None) != (failure is None) for mask, failure in zip(one.masks, one.failures, strict=True)
                )
                assert one.models
            assert {timing.module for timing in timings} >= {"segmenter"}


async def test_files_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "a_1.png").write_bytes(encode_png(np.ones(TALL.shape[:2], bool)))
    runner = make(f"files:{tmp_path / 'masks'}", Config(), deps=InferenceDeps())
    found, _ = await predict.run(ITEMS, ScoreSection(), deps=predict.PredictDeps(runner))
    kinds = [failure.kind if failure else "mask" for one in found for failure in one.failures]
    assert kinds == ["no_reply", "mask", "no_reply"]


class Careless:
    """Breaks every rule."""

    name = ""

    def models(self) -> tuple[ModelRef, ...]:
        return ()

    def segment(self, requests: list[SegmentRequest]) -> list[SegmentResult]:
        results = [SegmentResult(mask=None) for _ in requests]
        for number, request in enumerate(requests):
            request.image[0, 0] = request.image[0, 0] + 1
            results[number] = SegmentResult(mask=request.image[..., 0] % 2 == len(requests) % 2)
        if len(results) > 1:
            results[0] = SegmentResult(mask=np.zeros((3, 3), bool))
            results[1] = SegmentResult(mask=None, failure=None)
        return results or [SegmentResult(mask=None, failure=Failure(kind="error"))]


def test_breaches_are_found() -> None:
    asked = [SegmentRequest(image.copy(), "x") for image in (WIDE, TALL, WIDE)]
    told = {breach.rule for breach in check_segmenter(Careless(), asked)}
    assert told == {
        "it names itself and its models",
        "nothing asked, nothing answered",
        "a mask of the image's size, or a failure with its kind",
        "images are left as they are",
        "the same requests give the same results",
        "a result does not depend on its neighbours",
    }

"""Seg-Zero and LLMSeg over a real loopback model server."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.blocks import BlockDetector, BlockMasker, block_mask, scene
from support.llm_server import Body, LlmServer, Scripted, completion
from support.shapes import SIDE, circle_points, disc, ring, star, star_points

from engine.core.config import Config, LlmSection, ScoreSection
from engine.core.errors import ConfigError
from engine.core.geometry import Mask, mask_iou
from engine.core.images import open_image
from engine.core.masks import decode_rle
from engine.core.protocols import EvalItem
from engine.core.schema import Prediction
from engine.llm.client import OpenAIChat
from inference import predict
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make

LEFT, RIGHT = (5, 10, 45, 60), (70, 20, 110, 70)
PICTURE = scene([((220, 20, 20), LEFT), ((20, 20, 220), RIGHT)])
ITEM = EvalItem(sample_id="s1", question="Which person opened the gate?", images=(PICTURE,))


@contextmanager
def server(reply: Callable[[Body], Scripted]) -> Iterator[LlmServer]:
    with LlmServer(reply=reply) as running:
        yield running


@asynccontextmanager
async def deps(running: LlmServer, cache: Path) -> AsyncIterator[InferenceDeps]:
    section = LlmSection(base_url=running.url, model="eyes", sees_images=True)
    async with OpenAIChat(section, api_key="test-key", cache=cache) as chat:
        yield InferenceDeps(
            vision_chat=chat, make_detector=lambda _: BlockDetector(), make_mask_model=lambda _: BlockMasker()
        )


async def answer(
    name: str, reply: Callable[[Body], Scripted], cache: Path, *items: EvalItem, masker: BlockMasker | None = None
) -> list[Prediction]:
    with server(reply) as running:
        async with deps(running, cache) as made:
            if masker is not None:
                made = replace(made, make_mask_model=lambda _: masker)
            runner = make(name, Config(), deps=made)
            predictions, _ = await predict.run(items, ScoreSection(), deps=predict.PredictDeps(runner))
    return predictions


def shown(body: Body) -> np.ndarray:
    """The picture in a request."""
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    (url,) = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return open_image(base64.b64decode(url.split(",", 1)[1])).pixels


def in_840(box: tuple[int, int, int, int]) -> list[float]:
    return [box[0] / 120 * 840, box[1] / 80 * 840, box[2] / 120 * 840, box[3] / 80 * 840]


@pytest.mark.parametrize(
    "said",
    [
        json.dumps([{"bbox_2d": in_840(RIGHT), "point_2d": [600, 400]}]),
        "<box>({:.0f},{:.0f}),({:.0f},{:.0f})</box><points>(600,400),(610,410)</points>".format(*in_840(RIGHT)),
    ],
    ids=["json", "tags"],
)
async def test_seg_zero_reads_both_published_forms(tmp_path: Path, said: str) -> None:
    sizes = []

    def reply(body: Body) -> Scripted:
        sizes.append(shown(body).shape)
        return completion(f"<think>left or right</think><answer>{said}</answer>")

    (found,) = await answer("seg-zero", reply, tmp_path, ITEM)
    assert sizes == [(840, 840, 3)]
    assert found.masks[0] is not None
    assert mask_iou(decode_rle(found.masks[0]), block_mask(RIGHT)) == 1.0
    assert "left or right" in found.text


@pytest.mark.parametrize(
    ("said", "points"),
    [
        ('[{"bbox_2d": [0, 0, 840, 840], "point_2d": [630, 473]}]', [(90.0, 45.05)]),
        ('{"bbox": [0, 0, 840, 840], "points_1": [630, 473], "points_2": [637, 483]}', [(90.0, 45.05), (91.0, 46.0)]),
        ("<box>(0,0),(840,840)</box><points>(630,473),(637,483)</points>", [(90.0, 45.05), (91.0, 46.0)]),
    ],
    ids=["list", "object", "tags"],
)
async def test_seg_zero_gives_points_beside_the_box(
    tmp_path: Path, said: str, points: list[tuple[float, float]]
) -> None:
    """In a box around both blocks the point decides, in pixels of the image by a factor of its own for each axis."""
    masker = BlockMasker()
    (found,) = await answer("seg-zero", lambda _: completion(f"<answer>{said}</answer>"), tmp_path, ITEM, masker=masker)
    (asked,) = masker.asked
    assert [pytest.approx(point, abs=0.01) for point in points] == list(asked)
    assert found.masks[0] is not None
    assert mask_iou(decode_rle(found.masks[0]), block_mask(RIGHT)) == 1.0


async def test_seg_zero_joins_objects_and_keeps_nothing_there_apart_from_no_answer(tmp_path: Path) -> None:
    said = {
        "both": json.dumps([{"bbox_2d": in_840(LEFT)}, {"bbox_2d": in_840(RIGHT)}]),
        "none": "[]",
        "words": "The mayor is not in the picture.",
        "flat": json.dumps([{"bbox_2d": [5, 5, 5, 60]}]),
    }

    def reply(body: Body) -> Scripted:
        asked = json.dumps(body["messages"])
        return completion(next(f"<answer>{text}</answer>" for word, text in said.items() if f"is {word}?" in asked))

    items = [replace(ITEM, sample_id=word, question=f"Where is {word}?") for word in said]
    found = {p.sample_id: p for p in await answer("seg-zero", reply, tmp_path, *items)}
    both, none = found["both"].masks[0], found["none"].masks[0]
    assert both is not None
    assert none is not None
    assert mask_iou(decode_rle(both), block_mask(LEFT) | block_mask(RIGHT)) == 1.0
    assert not decode_rle(none).any()
    for word in ("words", "flat"):
        assert found[word].masks == (None,)
        assert found[word].failures[0] is not None
        assert found[word].failures[0].kind == "bad_reply"


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        (completion(None, refusal="I cannot"), "refused"),
        (completion("<answer>[", finish="length"), "bad_reply"),
        (completion(""), "no_reply"),
    ],
)
async def test_replies_that_are_none_are_failures(tmp_path: Path, scripted: Scripted, kind: str) -> None:
    for name in ("seg-zero", "llmseg"):
        (found,) = await answer(name, lambda _: scripted, tmp_path / name, ITEM)
        assert found.masks == (None,)
        assert found.failures[0] is not None
        assert found.failures[0].kind == kind, name


SHAPES: dict[str, tuple[Mask, list[dict[str, Any]]]] = {
    "circle": (disc(80), [{"points": circle_points(80, 12), "corners": [], "hole": False}]),
    "ring": (
        ring(80, 40),
        [
            {"points": circle_points(80, 12), "corners": [], "hole": False},
            {"points": circle_points(40, 10), "corners": [], "hole": True},
        ],
    ),
    "star": (star(), [{"points": star_points(), "corners": list(range(10)), "hole": False}]),
}


class Tracer:
    """Answers LLMSeg's three stages about one shape; `off` displaces the first tracing, which is then corrected."""

    def __init__(self, shape: str, *, off: float = 0.0) -> None:
        self.mask, self.outlines = SHAPES[shape]
        ys, xs = np.nonzero(self.mask)
        self.box = (int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1)
        self.off = off
        self.asked: list[str] = []

    def picture(self) -> np.ndarray:
        pixels = np.full((SIDE, SIDE, 3), 200, np.uint8)
        pixels[self.mask] = (30, 90, 30)
        return pixels

    def __call__(self, body: Body) -> Scripted:
        said = json.dumps(body["messages"])
        if "Give the bounding box" in said:
            self.asked.append("detect")
            return completion(json.dumps([{"bbox_2d": [side / SIDE * 1000 for side in self.box]}]))
        if "Trace what answers" in said:
            self.asked.append("trace")
            return completion(json.dumps({"outlines": self.traced(self.off)}))
        self.asked.append("refine")
        if self.asked.count("refine") == 1 and self.off:
            return completion(json.dumps({"done": False, "outlines": self.traced(0.0)}))
        return completion(json.dumps({"done": True, "outlines": []}))

    def traced(self, off: float) -> list[dict[str, Any]]:
        """The outlines in thousandths of the crop that is shown: the box and a tenth around it."""
        x1, y1, x2, y2 = self.box
        left, top = int(x1 - 0.1 * (x2 - x1)), int(y1 - 0.1 * (y2 - y1))
        right, bottom = np.ceil(x2 + 0.1 * (x2 - x1)), np.ceil(y2 + 0.1 * (y2 - y1))
        scale = np.array([right - left, bottom - top]) / 1000.0
        return [
            {**outline, "points": ((outline["points"] + off - [left, top]) / scale).tolist()}
            for outline in self.outlines
        ]


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("off", [0.0, 9.0])
async def test_llmseg_draws_known_shapes(tmp_path: Path, shape: str, off: float) -> None:
    tracer = Tracer(shape, off=off)
    item = EvalItem(sample_id="s", question="the green thing", images=(tracer.picture(),))
    (found,) = await answer("llmseg", tracer, tmp_path, item)
    assert found.masks[0] is not None
    assert mask_iou(decode_rle(found.masks[0]), tracer.mask) >= 0.98
    assert tracer.asked == ["detect", "trace", "refine"] + (["refine"] if off else [])


async def test_llmseg_is_determined_by_its_replies(tmp_path: Path) -> None:
    item = EvalItem(sample_id="s", question="the green thing", images=(Tracer("star").picture(),))
    first, second = Tracer("star", off=5.0), Tracer("star", off=5.0)
    (one,) = await answer("llmseg", first, tmp_path / "a", item)
    (two,) = await answer("llmseg", second, tmp_path / "b", item)
    assert one.line() == two.line()
    again = Tracer("star", off=5.0)
    (three,) = await answer("llmseg", again, tmp_path / "b", item)
    assert three.line() == two.line()
    assert again.asked == []


async def test_llmseg_says_nothing_there_with_an_empty_mask(tmp_path: Path) -> None:
    (found,) = await answer("llmseg", lambda _: completion("[]"), tmp_path, ITEM)
    assert found.masks[0] is not None
    assert not decode_rle(found.masks[0]).any()


def test_both_need_a_model_that_sees() -> None:
    for name in ("seg-zero", "llmseg"):
        with pytest.raises(ConfigError, match="sees_images = true"):
            make(name, Config(), deps=InferenceDeps(make_mask_model=lambda _: BlockMasker()))
    wrong = Config(score=ScoreSection(options={"seg-zero": {"space": "inches"}}))
    with pytest.raises(ConfigError, match="known are resized_840"):
        make("seg-zero", wrong, deps=InferenceDeps(make_mask_model=lambda _: BlockMasker()))

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.annotating import BoxMasker, KnownDetector, entity, question
from support.llm_server import LlmServer, completion

from engine.core.config import AnnotateSection, LlmSection
from engine.core.errors import ConfigError
from engine.core.geometry import Box
from engine.core.images import encode_png
from engine.core.protocols import ChatReply, Detection
from engine.core.schema import Annotation, Code, Rejected
from engine.core.store import BlobStore
from engine.llm.client import OpenAIChat
from segmentation import annotate
from segmentation.annotate import AnnotateDeps
from segmentation.binding import Named, Scene, candidates_of
from segmentation.binding.marks import draw, on_loop, read_reply
from segmentation.registry import annotator_key

BOXES = [Box(10, 20, 60, 110), Box(90, 20, 140, 110), Box(180, 20, 230, 110)]
CONFIG = AnnotateSection(marks=True)


def said(*pairs: tuple[str, object], status: str = "ok") -> ChatReply:
    data = {"boxes": [{"name": name, "number": number} for name, number in pairs]}
    return ChatReply(status=status, data=data)  # type: ignore[arg-type]


def test_replies_are_read_strictly() -> None:
    names = {"Ada", "Bob"}
    assert read_reply(said(("Ada", 2), ("Bob", 1)), names) == {"Ada": 2, "Bob": 1}
    assert read_reply(said(("Ada", 2), ("Bob", 0)), names) == {"Ada": 2}
    assert read_reply(said(("Ada", 2), ("Bob", 2)), names) == {}  # one box cannot be two names
    assert read_reply(said(("Ada", 2), ("Ada", 3)), names) == {}  # nor one name two boxes
    assert read_reply(said(("Eve", 1), ("Ada", "1"), ("Bob", True)), names) == {}
    assert read_reply(said(("Ada", 1), status="refused"), names) == {}
    assert read_reply(ChatReply(status="ok", data={"boxes": "none"}), names) == {}


def test_every_candidate_is_drawn_with_its_number() -> None:
    pixels = np.full((120, 240, 3), 200, np.uint8)
    found = candidates_of([Detection(box, 0.9, "person") for box in BOXES], same_iou=0.6)
    scene = Scene(pixels, (Named(entity("Ada")),), found)
    drawn = draw(scene)
    assert drawn.shape == pixels.shape
    assert (pixels == 200).all()  # the picture itself is left alone
    for box in BOXES:
        assert (drawn[int(box.y1), int(box.x1) : int(box.x2)] != 200).any()
    assert (drawn[:15] == 200).all()


def test_marks_through_a_real_endpoint(tmp_path: Path) -> None:
    """A caption without enough to go by: with place words for one of three, the model's word is the second kind."""
    blobs = BlobStore(tmp_path / "blobs")
    image = blobs.put(encode_png(np.random.default_rng(0).integers(0, 255, (120, 240, 3), dtype=np.uint8)), "png")
    ada, bob = entity("Ada", position="left"), entity("Bob", order=1)
    shard = [question(ada, bob, images=[image]), question(bob, ada, images=[image])]
    reply = json.dumps({"boxes": [{"name": "Ada", "number": 1}, {"name": "Bob", "number": 3}]})
    detector = KnownDetector({"person": [(box, 0.9) for box in BOXES]})
    with LlmServer(reply=lambda _: completion(reply)) as server:
        llm = LlmSection(base_url=server.url, model="test-model", sees_images=True)
        chat = OpenAIChat(llm, api_key="test-key", cache=tmp_path / "cache")
        deps = AnnotateDeps(detector=detector, mask_model=BoxMasker(), blobs=blobs, chat=chat)
        first, second = annotate.run(shard, CONFIG, deps=deps)
        again = annotate.run(shard, CONFIG, deps=deps)
        on_loop(chat.__aexit__())
        assert server.answered == 1  # one request per picture, and none twice
        sent = json.dumps(server.bodies[0])
    assert isinstance(first, Annotation)
    assert first.images[0].binding.rule == "marks+position"
    assert first.images[0].binding.candidate == 0
    assert isinstance(second, Rejected)
    assert second.code is Code.UNBOUND  # the model's word alone does not bind
    assert again == [first, second]
    assert "image_url" in sent
    assert "- Ada (person)" in sent


def test_marks_need_a_model() -> None:
    deps = AnnotateDeps(detector=KnownDetector({}), mask_model=BoxMasker(), blobs=BlobStore(Path("none")))
    with pytest.raises(ConfigError, match="sees_images"):
        annotate.run([question(entity("Ada"), images=[])], CONFIG, deps=deps)


def test_prompt_and_model_are_in_the_key() -> None:
    portable = AnnotateSection(detector="portable", mask_model="portable")
    asking = portable.model_copy(update={"marks": True})
    keys = [annotator_key(portable), annotator_key(asking, marks_model="a"), annotator_key(asking, marks_model="b")]
    assert len({json.dumps(key, sort_keys=True) for key in keys}) == 3

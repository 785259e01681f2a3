"""What a picture shows, from a model that sees: names in, candidates picked, refusals no error."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pytest
from support.chat import KeptChat
from support.slow_search import SlowSearch, deps

from engine.core.config import Config, RoseSection
from engine.core.errors import ConfigError
from engine.core.protocols import ChatReply, EvalItem, ImageHit, TextHit
from inference.rose.answer import Candidate, Reading
from inference.rose.irag import Irag
from inference.rose.make import make_rose
from inference.rose.seen import ChatEntities

IMAGE = np.random.default_rng(3).integers(0, 256, (40, 50, 3), dtype=np.uint8)
ITEM = EvalItem("s", "Which person won the regatta?", (IMAGE,), datetime(2026, 3, 9, tzinfo=UTC))


Eyes = partial(KeptChat, name="eyes")


def names(*told: object) -> ChatReply:
    return ChatReply("ok", data={"entities": list(told)})


async def test_names_come_surest_first_and_once() -> None:
    told = [{"name": "Ada  Brook", "confidence": 0.4}, {"name": "Vireo 12E", "confidence": 3}, {"name": "Ada Brook"}]
    eyes = Eyes(names(*told, {"name": "Ada Brook", "confidence": 0.6}, {"name": "", "confidence": 1}, "x"))
    found = await ChatEntities(eyes).entities(IMAGE)
    assert [(one.name, one.score) for one in found] == [("Vireo 12E", 1.0), ("Ada Brook", 0.6)]
    assert eyes.asked[0].images[0][:2] == b"\xff\xd8"
    assert eyes.asked[0].purpose == "rose.entities"


@pytest.mark.parametrize("reply", [ChatReply("refused"), ChatReply("truncated"), ChatReply("ok", data={"entities": 3})])
async def test_a_model_that_names_nobody_is_no_error(reply: ChatReply) -> None:
    assert await ChatEntities(Eyes(reply)).entities(IMAGE) == []


class Known:
    """A search and a reader with two candidates, the wrong one surer."""

    name = "known"

    async def text(self, query: str, **_: object) -> list[TextHit]:
        return [
            TextHit("https://a.example/1", "News", "Otto Lind and Ada Brook won.", datetime(2026, 3, 1, tzinfo=UTC))
        ]

    async def images(self, query: str, **_: object) -> list[ImageHit]:
        return []

    async def read(self, question: str, chunks: object) -> Reading:
        return Reading((Candidate("Otto Lind", 0.9), Candidate("Ada Brook", 0.6)))


@pytest.mark.parametrize(
    ("seen", "answer", "why"),
    [
        ("Ada Brook", "Ada Brook", "in the image, says vision-model:eyes"),
        ("skipper Ada Brook", "Ada Brook", "in the image, says vision-model:eyes"),
        ("Somebody Else", "Otto Lind", "knows none of the candidates"),
    ],
)
async def test_what_is_seen_picks_among_the_candidates(seen: str, answer: str, why: str) -> None:
    known = Known()
    entities = ChatEntities(Eyes(names({"name": seen, "confidence": 0.9})))
    evidence = await Irag(known, known, RoseSection(), entities=entities).retrieve(ITEM)
    assert evidence.answer == answer
    assert why in evidence.trace[0].values["chosen_by"]


async def test_the_config_wires_it_and_says_what_it_lacks() -> None:
    config = Config(rose=RoseSection(answerer="extract", image_entities="vision-model"))
    wired = deps(SlowSearch(latency_s=0.0))
    with pytest.raises(ConfigError, match="sees_images = true"):
        make_rose("portable", config, deps=wired)
    rose = make_rose("portable", config, deps=replace(wired, seeing_chat=Eyes(names())))
    assert rose.irag is not None
    assert isinstance(rose.irag.entities, ChatEntities)

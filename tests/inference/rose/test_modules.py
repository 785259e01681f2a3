"""IRAG, TPE and VPE on their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.blocks import BlockDetector, BlockMasker, ColourEmbedder, block_mask, scene

from engine.core.config import RoseSection
from engine.core.geometry import mask_iou
from engine.core.protocols import (
    ChatReply,
    ChatRequest,
    Detection,
    DetectRequest,
    EvalItem,
    ImageHit,
    SegmentResult,
    TextHit,
)
from engine.core.schema import Failure
from engine.web.search.vision import ImageEntity
from inference.rose.answer import ExtractReader
from inference.rose.irag import Irag
from inference.rose.likeness import same_picture
from inference.rose.prototype import clusters, make_prototype
from inference.rose.read_llm import LlmReader
from inference.rose.text import split_chunks
from inference.rose.tpe import enhance, plain
from inference.rose.vpe import Vpe, VpeCase
from inference.segmenters.base import Wording

RED, BLUE, GREEN = (220, 20, 20), (20, 20, 220), (20, 220, 20)
LEFT, RIGHT = (5, 5, 60, 70), (80, 20, 110, 60)
PICTURE = scene([(RED, LEFT), (BLUE, RIGHT)])
DAY = datetime(2026, 3, 1, tzinfo=UTC)
QUESTION = "Which person in the image won the regatta?"


def shade(colour: tuple[int, int, int]) -> np.ndarray:
    return np.full((20, 20, 3), colour, np.uint8)


# ---------------------------------------------------------------- IRAG


class Stored:
    name = "stored"

    def __init__(self, text: str, pictures: Sequence[np.ndarray] = ()) -> None:
        self._text, self._pictures = text, pictures
        self.queries: list[str] = []

    async def text(self, query: str, **_: object) -> list[TextHit]:
        self.queries.append(query)
        return [TextHit("https://a.example/1", "News", self._text, DAY)]

    async def images(self, query: str, **_: object) -> list[ImageHit]:
        return [ImageHit(f"https://a.example/{n}.png", query, p, DAY) for n, p in enumerate(self._pictures)]


class InImage:
    name = "eyes"

    def __init__(self, *names: str) -> None:
        self.names = names

    async def entities(self, image: np.ndarray) -> list[ImageEntity]:
        return [ImageEntity(name) for name in self.names]


TWO = "Mara Quist won the regatta. The regatta was won by Otto Lind."


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        ((), "Mara Quist"),
        (("OTTO LIND",), "Otto Lind"),
        (("sailor Otto Lind 2026",), "Otto Lind"),
        (("Lind",), "Mara Quist"),
    ],
)
async def test_what_the_image_shows_picks_among_candidates(seen: tuple[str, ...], answer: str) -> None:
    irag = Irag(Stored(TWO), ExtractReader(), RoseSection(), entities=InImage(*seen))
    item = EvalItem("s", QUESTION, (PICTURE,))
    assert (await irag.retrieve(item)).answer == answer


async def test_the_sample_s_own_picture_is_no_reference() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    other = np.random.default_rng(4).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    irag = Irag(Stored(TWO, [noise, other]), ExtractReader(), RoseSection())
    evidence = await irag.retrieve(EvalItem("s", QUESTION, (noise,)))
    assert len(evidence.references) == 1
    assert np.array_equal(evidence.references[0], other)
    assert same_picture(noise, np.clip(noise.astype(int) + 3, 0, 255).astype(np.uint8))
    assert not same_picture(shade(RED), shade(BLUE))


class Scripted:
    """A chat model that gives its replies by the schema's name, passage by passage."""

    name = "scripted"

    def __init__(self, **replies: list[ChatReply]) -> None:
        self.replies = replies
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return self.replies[request.schema_name].pop(0)


def said(key: str, *names: str, score: float = 0.9) -> ChatReply:
    rows = [{"name": name, "confidence": score, "quote": "q"} for name in names]
    return ChatReply("ok", data={key: rows}, usd=0.01, tokens_in=10, tokens_out=2)


async def test_map_and_reduce_join_what_passages_say() -> None:
    chunks = split_chunks("Mara Quist won.\nOtto Lind won.\nIt rained.", words=2, url="u")
    chat = Scripted(
        answers=[said("answers", "Mara Quist"), said("answers", "Otto Lind"), ChatReply("refused")],
        candidates=[said("candidates", "Otto Lind", "Somebody Else", score=0.7)],
    )
    reading = await LlmReader(chat, parallel=1).read(QUESTION, chunks)
    assert [candidate.name for candidate in reading.candidates] == ["Otto Lind"]
    assert reading.cost.usd == pytest.approx(0.03)
    assert any("refused" in note for note in reading.notes)
    assert any("Somebody Else" in note for note in reading.notes)


async def test_a_name_that_no_passage_has_is_dropped() -> None:
    chunks = split_chunks("Mara Quist won.", words=20, url="u")
    reading = await LlmReader(Scripted(answers=[said("answers", "Eve Invented", "Mara Quist")])).read(QUESTION, chunks)
    assert [candidate.name for candidate in reading.candidates] == ["Mara Quist"]
    assert any("Eve Invented" in note for note in reading.notes)


async def test_the_model_rewrites_the_query_and_its_silence_does_not_stop_retrieval() -> None:
    for reply, query in (
        (ChatReply("ok", data={"query": "regatta winner"}), "regatta winner"),
        (ChatReply("refused"), "won the regatta"),
    ):
        search = Stored(TWO)
        irag = Irag(search, ExtractReader(), RoseSection(), chat=Scripted(query=[reply]))
        await irag.retrieve(EvalItem("s", QUESTION, (PICTURE,)))
        assert search.queries == [query]


# ---------------------------------------------------------------- TPE

SENTENCE = Wording(question="{text} Please output segmentation mask.", phrase="Please segment {text}.")


def test_prompts_with_and_without_an_answer() -> None:
    full = enhance(QUESTION, "Mara Quist", ["She wore green."], wording=SENTENCE, prompt_chars=600)
    assert full.text == (
        "She wore green. Mara Quist is the person who won the regatta. Which person in the image won the regatta? "
        "Please output segmentation mask."
    )
    assert enhance(QUESTION, None, ["x"], wording=SENTENCE, prompt_chars=600).text == SENTENCE.ask(QUESTION)
    assert plain(QUESTION, "Mara Quist", wording=SENTENCE).text == "Please segment Mara Quist."
    assert plain(QUESTION, None, wording=SENTENCE).text == SENTENCE.ask(QUESTION)
    phrase = Wording(form="phrase")
    assert enhance(QUESTION, "Mara Quist", (), wording=phrase, prompt_chars=600).text == "person Mara Quist"
    assert plain(QUESTION, "Mara Quist", wording=phrase).text == "Mara Quist"
    kinds = Wording(form="phrase", names=False)
    assert enhance(QUESTION, "Mara Quist", (), wording=kinds, prompt_chars=600).text == "person"


@given(st.lists(st.text(alphabet="ab ", max_size=80), max_size=5), st.integers(60, 400))
def test_background_never_breaks_the_limit_nor_costs_the_answer(background: list[str], limit: int) -> None:
    wording = Wording(max_chars=10_000)
    prompt = enhance(QUESTION, "Mara Quist", background, wording=wording, prompt_chars=limit).text
    assert len(prompt) <= limit
    assert "Mara Quist" in prompt


# ---------------------------------------------------------------- VPE


def vpe(**section: object) -> Vpe:
    return Vpe(BlockDetector(), BlockMasker(), ColourEmbedder(), RoseSection.model_validate(section))


def case(box: tuple[int, int, int, int] | None, *references: np.ndarray) -> VpeCase:
    if box is None:
        result = SegmentResult(mask=None, failure=Failure(kind="no_mask_token"))
    else:
        result = SegmentResult(mask=block_mask(box))
    return VpeCase(PICTURE, ("person",), result, references)


@pytest.mark.parametrize(
    ("box", "references", "section", "told", "right"),
    [
        (RIGHT, [shade(BLUE)], {}, "kept: the region is alike", RIGHT),
        (LEFT, [shade(BLUE)], {}, "replaced by the best candidate", RIGHT),
        (None, [shade(BLUE)], {}, "replaced by the best candidate", RIGHT),
        (LEFT, [], {}, "kept: no reference pictures", LEFT),
        (LEFT, [shade(GREEN)], {}, "kept: no candidate is alike enough", LEFT),
        (LEFT, [shade(RED), shade(RED), shade(BLUE)], {}, "kept: the region is alike", LEFT),
        (
            RIGHT,
            [shade((60, 20, 220))],
            {"low_similarity": 1.0, "accept_similarity": -1.0},
            "kept: no candidate is more alike",
            RIGHT,
        ),
    ],
)
def test_regions_are_kept_or_replaced(
    box: tuple[int, int, int, int] | None,
    references: list[np.ndarray],
    section: dict[str, float],
    told: str,
    right: tuple[int, int, int, int],
) -> None:
    (outcome,) = vpe(**section).check([case(box, *references)])
    assert outcome.trace.output.startswith(told)
    assert outcome.result.mask is not None
    assert mask_iou(outcome.result.mask, block_mask(right)) == 1.0
    assert outcome.changed == told.startswith("replaced")


def test_a_failure_stays_one_where_nothing_is_alike() -> None:
    (outcome,) = vpe().check([case(None, shade(GREEN))])
    assert outcome.result.mask is None
    assert outcome.result.failure is not None
    assert outcome.result.failure.kind == "no_mask_token"


def test_the_detector_runs_once_over_the_doubted() -> None:
    checker = vpe()
    cases = [case(LEFT, shade(BLUE)), case(RIGHT, shade(BLUE)), case(None, shade(RED)), case(LEFT)]
    outcomes = checker.check(cases)
    assert [outcome.changed for outcome in outcomes] == [True, False, True, False]
    assert checker.detector.calls == [2]  # type: ignore[attr-defined]


def unit(*rows: Sequence[float]) -> np.ndarray:
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_largest_cluster_makes_the_prototype() -> None:
    vectors = unit((1, 0), (0, 1), (1, 0.1), (0.1, 1), (1, -0.1))
    assert clusters(vectors, min_similarity=0.8) == [(0, 2, 4), (1, 3)]
    prototype = make_prototype(vectors, min_similarity=0.8)
    assert prototype is not None
    assert prototype.members == (0, 2, 4)
    assert prototype.vector == pytest.approx([1.0, 0.0], abs=0.02)
    assert make_prototype(vectors[:0], min_similarity=0.8) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(0.1, 1)), min_size=1, max_size=8),
    st.floats(-1, 1),
)
def test_clusters_part_the_pictures(rows: list[tuple[float, float, float]], least: float) -> None:
    vectors = unit(*rows)
    groups = clusters(vectors, min_similarity=least)
    assert sorted(member for group in groups for member in group) == list(range(len(rows)))
    assert [len(group) for group in groups] == sorted((len(group) for group in groups), reverse=True)
    prototype = make_prototype(vectors, min_similarity=least)
    assert prototype is not None
    assert float(np.linalg.norm(prototype.vector)) == pytest.approx(1.0, abs=1e-5)


def test_a_check_that_memory_does_not_suffice_for_leaves_the_region() -> None:
    class Heavy(BlockDetector):
        def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
            if any(request.phrases == ("heavy",) for request in requests):
                raise MemoryError("too large")
            return super().detect(requests)

    checker = Vpe(Heavy(), BlockMasker(), ColourEmbedder(), RoseSection())
    doubted = case(LEFT, shade(BLUE))
    heavy = replace(doubted, phrases=("heavy",))
    outcomes = checker.check([doubted, heavy, doubted])
    assert [outcome.changed for outcome in outcomes] == [True, False, True]
    assert outcomes[1].trace.output == "kept: memory did not suffice for the check"
    assert outcomes[1].result is heavy.result

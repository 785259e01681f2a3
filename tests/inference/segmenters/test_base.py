"""The adapter from segmenter to runner: fixed batches, failures of single images, wording."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import TerminalError, TransientError
from engine.core.protocols import EvalItem, SegmentRequest, SegmentResult
from engine.core.schema import ModelRef
from inference.segmenters.base import SegmenterRunner, Wording, failure_of, segment_batched, shorten
from inference.segmenters.bridge import note_loop, wait_for

IMAGE = np.zeros((6, 8, 3), np.uint8)
MASK = np.ones((6, 8), bool)


class Odd:
    """A segmenter that goes wrong as its prompts say, and notes how large its batches are."""

    name = "odd"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def models(self) -> tuple[ModelRef, ...]:
        return (ModelRef(role="segmenter", name="odd"),)

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        self.batches.append(len(requests))
        prompts = [request.prompt for request in requests]
        for prompt in prompts:
            if prompt == "memory":
                raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
            if prompt == "slow":
                raise TimeoutError
            if prompt == "away":
                raise TransientError("the endpoint is away")
        shapes = {"small": MASK[:2], "numbers": MASK.astype(np.uint8), "nothing": None}
        return [SegmentResult(mask=shapes.get(prompt, MASK)) for prompt in prompts]


def asked(*prompts: str, batch: int = 3) -> tuple[list[SegmentResult], list[int]]:
    odd = Odd()
    results, seconds = segment_batched(odd, [SegmentRequest(IMAGE, p) for p in prompts], batch=batch)
    assert len(seconds) == len(prompts)
    return results, odd.batches


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("memory", "out_of_memory"),
        ("slow", "timeout"),
        ("small", "error"),
        ("numbers", "error"),
        ("nothing", "error"),
    ],
)
def test_a_failure_is_that_of_one_image(prompt: str, kind: str) -> None:
    results, _ = asked("a", prompt, "b", "c")
    assert [result.failure.kind if result.failure else None for result in results] == [None, kind, None, None]
    assert results[1].mask is None


def test_batches_are_cut_by_position_and_a_broken_one_is_done_alone() -> None:
    assert asked("a", "b", "c", "d")[1] == [3, 1]
    assert asked("a", "b", "c", "memory", "e")[1] == [3, 2, 1, 1]


def test_memory_that_ends_a_model_is_a_failure_of_that_image() -> None:
    """The models' own error for one image that does not fit is a `TerminalError`, and still no end of the run."""

    class OutOfMemory(TerminalError):
        pass

    class Heavy(Odd):
        def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
            if any(request.prompt == "heavy" for request in requests):
                raise OutOfMemory("a single one of the images does not fit into memory")
            return super().segment(requests)

    requests = [SegmentRequest(IMAGE, prompt) for prompt in ("a", "heavy", "b")]
    results, _ = segment_batched(Heavy(), requests, batch=3)
    assert [result.failure.kind if result.failure else None for result in results] == [None, "out_of_memory", None]


def test_a_service_that_is_away_is_no_failure_of_an_image() -> None:
    with pytest.raises(TransientError):
        asked("a", "away", "b")


async def test_every_image_of_a_sample_gets_the_question() -> None:
    runner = SegmenterRunner(Odd(), wording=Wording(question="{text} Show it."), batch=2)
    items = [EvalItem("s1", "Which one?", (IMAGE, IMAGE, IMAGE)), EvalItem("s2", "And  this?", (IMAGE,))]
    first, second = await runner.run(items)
    assert len(first.masks) == 3
    assert first.failures == (None, None, None)
    assert first.trace[0].input == "Which one? Show it."
    assert second.trace[0].input == "And this? Show it."
    assert [timing.module for timing in first.timings] == ["segmenter"]


def test_segmenters_of_phrases_get_the_noun() -> None:
    wording = Wording(form="phrase", phrase="a {text}")
    assert wording.ask("Which phone in the image was unveiled on Monday?") == "a phone"
    assert wording.show("Mara Quist") == "a Mara Quist"


@given(st.text(max_size=200), st.integers(1, 80))
def test_shortening_keeps_within_the_limit_and_whole_words(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert " ".join(text.split()).startswith(short)


def test_kinds_of_failures() -> None:
    assert failure_of(MemoryError()).kind == "out_of_memory"
    assert failure_of(ValueError("x")).kind == "error"
    assert failure_of(ValueError("x")).detail == "ValueError: x"


async def _twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def test_threads_wait_for_coroutines_of_the_run_s_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def where() -> int:
        loops.append(asyncio.get_running_loop())
        return 1

    note_loop()
    assert await asyncio.to_thread(wait_for, [_twice(2), _twice(3)]) == [4, 6]
    assert await asyncio.to_thread(wait_for, [where()]) == [1]
    assert loops == [asyncio.get_running_loop()]


def test_without_a_run_a_loop_is_made() -> None:
    assert wait_for([_twice(4)]) == [8]

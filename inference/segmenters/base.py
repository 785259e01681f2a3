"""What scores can be made of: a `Runner` turns samples into masks; a core `Segmenter` becomes one by an adapter.

A `Segmenter` knows one image and a prompt in its own words. A `Runner` knows a whole sample: the question, several
images, the cut-off. The baseline gives the question itself to the segmenter, in the wording it was trained on.
Retrieval lives in `inference.rose`; what is done with the results in `inference.predict`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from engine.core.errors import NestError
from engine.core.protocols import EvalItem, Segmented, Segmenter, SegmentRequest, SegmentResult
from engine.core.schema import Failure, FailureKind, ModelRef, Timing, TraceStep
from inference.segmenters.bridge import note_loop
from inference.segmenters.phrases import phrase_of


class Runner(Protocol):
    """Samples to masks, one result per sample and in the same order.

    Raises `TransientError` when a service is out of reach for longer than its client waits; what goes wrong with
    one sample is a `Failure` in its result.
    """

    name: str

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]: ...

    def models(self) -> tuple[ModelRef, ...]: ...


@dataclass(frozen=True, slots=True)
class Wording:
    """How a segmenter wants to be asked.

    `question` wraps a full question, `phrase` a thing's name; both hold `{text}`. `max_chars` bounds the text put in.
    `form` says whether it takes sentences or only phrases, `names` whether it can make anything of a name.
    """

    question: str = "{text}"
    phrase: str = "{text}"
    max_chars: int = 600
    form: Literal["sentence", "phrase"] = "sentence"
    names: bool = True

    def ask(self, question: str) -> str:
        """The prompt for a question: the question itself, or the noun it asks for where only phrases are taken."""
        if self.form == "phrase":
            return self.show(phrase_of(question))
        return self.question.format(text=shorten(question, self.max_chars))

    def show(self, phrase: str) -> str:
        """The prompt for a phrase."""
        return self.phrase.format(text=shorten(phrase, self.max_chars))


def shorten(text: str, limit: int) -> str:
    """The text with single spaces, cut at the last whole word within `limit` characters."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[: limit + 1].rsplit(" ", 1)[0] if " " in flat[: limit + 1] else flat[:limit]
    return cut[:limit].rstrip(" ,;:")


class SegmenterRunner:
    """The baseline: the question in the segmenter's wording, every image of the sample on its own."""

    def __init__(self, segmenter: Segmenter, *, wording: Wording | None = None, batch: int = 8) -> None:
        self.name = segmenter.name
        self.segmenter = segmenter
        self.wording = wording if wording is not None else Wording()
        self.batch = batch

    def models(self) -> tuple[ModelRef, ...]:
        return self.segmenter.models()

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]:
        note_loop()
        prompts = [self.wording.ask(item.question) for item in items]
        requests = [
            SegmentRequest(image=image, prompt=prompt)
            for item, prompt in zip(items, prompts, strict=True)
            for image in item.images
        ]
        results, seconds = await asyncio.to_thread(segment_batched, self.segmenter, requests, batch=self.batch)
        done: list[Segmented] = []
        start = 0
        for item, prompt in zip(items, prompts, strict=True):
            own = slice(start, start + len(item.images))
            start = own.stop
            spent = Timing(sample_id=item.sample_id, segmenter=self.name, module="segmenter", seconds=sum(seconds[own]))
            done.append(assemble(results[own], prompt=prompt, name=self.name, timings=(spent,)))
        return done


def assemble(
    results: Sequence[SegmentResult],
    *,
    prompt: str,
    name: str,
    timings: tuple[Timing, ...] = (),
    trace: tuple[TraceStep, ...] = (),
    answer: str | None = None,
) -> Segmented:
    """One sample's result from those of its images, with a trace step that shows what the segmenter was asked."""
    said = "\n".join(dict.fromkeys(result.text for result in results if result.text))
    failed = [f"{n}: {r.failure.kind}" for n, r in enumerate(results) if r.failure is not None]
    step = TraceStep(
        module="segmenter", input=prompt, output=said, values={"name": name, "failures": ", ".join(failed)}
    )
    return Segmented(
        masks=tuple(None if result.failure is not None else result.mask for result in results),
        failures=tuple(result.failure for result in results),
        answer=answer,
        text=said,
        trace=(*trace, step),
        timings=timings,
    )


def segment_batched(
    segmenter: Segmenter,
    requests: Sequence[SegmentRequest],
    *,
    batch: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[SegmentResult], list[float]]:
    """Run the segmenter over fixed batches in order; seconds are a batch's time shared evenly.

    Batches are cut by position only, never by what happens to be ready: a model's last bits may depend on its
    neighbours in a batch, and the same samples must give the same masks. A batch that runs out of memory or raises
    is done again one by one, so that a failure is the failure of one image.
    """
    results: list[SegmentResult] = []
    seconds: list[float] = []
    for start in range(0, len(requests), max(1, batch)):
        part = requests[start : start + max(1, batch)]
        began = clock()
        done = _attempt(segmenter, part)
        if done is None and len(part) > 1:
            done = [found for request in part for found in _attempt(segmenter, [request]) or []]
        if done is None or len(done) != len(part):
            raise RuntimeError(f"{segmenter.name} gave {len(done or [])} results for {len(part)} requests")
        results += [_checked(found, request) for found, request in zip(done, part, strict=True)]
        seconds += [(clock() - began) / len(part)] * len(part)
    return results, seconds


def _attempt(segmenter: Segmenter, part: Sequence[SegmentRequest]) -> list[SegmentResult] | None:
    """The results of one call; None if a call for several images failed and each is to be tried alone."""
    try:
        return list(segmenter.segment(part))
    except Exception as error:  # a segmenter is foreign code: its failure is a counted result
        # what goes wrong for the whole run is told as such, but an image that does not fit into memory is one image
        if isinstance(error, NestError) and not _is_out_of_memory(error):
            raise
        if len(part) > 1:
            return None
        return [SegmentResult(mask=None, failure=failure_of(error))]


def failure_of(error: BaseException) -> Failure:
    """The kind of failure an exception stands for. Out of memory is told by name, so that torch is not imported."""
    kind: FailureKind = "error"
    told = f"{type(error).__name__}: {error}"
    if _is_out_of_memory(error):
        kind = "out_of_memory"
    elif isinstance(error, TimeoutError):
        kind = "timeout"
    return Failure(kind=kind, detail=shorten(told, 300))


def _is_out_of_memory(error: BaseException) -> bool:
    named = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
    return named or "out of memory" in str(error).lower()


def _checked(result: SegmentResult, request: SegmentRequest) -> SegmentResult:
    """The result if it keeps the contract: a mask of the image's size or a failure, exactly one of them."""
    height, width = request.image.shape[:2]
    if (result.mask is None) == (result.failure is None):
        return SegmentResult(mask=None, failure=Failure(kind="error", detail="neither or both of mask and failure"))
    if result.mask is not None and (result.mask.shape != (height, width) or result.mask.dtype != bool):
        told = f"a mask {result.mask.dtype} {result.mask.shape} for an image of {height}x{width}"
        return replace(result, mask=None, failure=Failure(kind="error", detail=told))
    return result

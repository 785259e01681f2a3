"""ROSE: WebSense -> IRAG -> TPE -> segmenter -> VPE, around any segmenter, whose weights stay untouched.

Retrieval of many samples runs at a time, model calls run in batches cut by position; while one batch is with the models
the retrieval of the next goes on. Every module leaves a trace step in the prediction and its seconds and cost beside
it. Without an answer the segmenter gets the plain question, and the trace says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core.config import RoseSection
from engine.core.protocols import EvalItem, Segmented, Segmenter, SegmentRequest, SegmentResult
from engine.core.schema import ModelRef, Timing, TraceStep
from inference.rose.cost import Cost
from inference.rose.irag import Evidence, Irag
from inference.rose.tpe import enhance, plain
from inference.rose.vpe import Vpe, VpeCase
from inference.rose.websense import WebSense
from inference.segmenters.base import Wording, assemble, segment_batched
from inference.segmenters.bridge import note_loop
from inference.segmenters.phrases import nouns_of

VERSION = "3"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a sample before the segmenter sees it."""

    prompt: str
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    timings: tuple[Timing, ...]


class Rose:
    """The `Runner` around a segmenter. A module that is switched off may be None."""

    def __init__(
        self,
        segmenter: Segmenter,
        section: RoseSection,
        *,
        wording: Wording,
        websense: WebSense | None,
        irag: Irag | None,
        vpe: Vpe | None,
        vpe_phrases: Callable[[str], tuple[str, ...]] = nouns_of,
        max_in_flight: int = 16,
        batch: int = 8,
        name: str = "",
    ) -> None:
        self.name = name or f"rose:{segmenter.name}"
        self.segmenter = segmenter
        self.section = section
        self.wording = wording
        self.websense = websense if section.websense else None
        self.irag = irag if section.irag else None
        self.vpe = vpe if section.vpe else None
        self.vpe_phrases = vpe_phrases
        self.max_in_flight = max_in_flight
        self.batch = max(1, batch)

    def models(self) -> tuple[ModelRef, ...]:
        """Those of the segmenter, of retrieval and of VPE, each once."""
        retrieval = self.irag.models() if self.irag is not None else ()
        checking = self.vpe.models() if self.vpe is not None else ()
        return tuple(dict.fromkeys((*self.segmenter.models(), *retrieval, *checking)))

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]:
        """One result per item, in order. Retrieval that cannot go on stops the run; what is recorded stays."""
        note_loop()
        gate = asyncio.Semaphore(self.max_in_flight)

        async def limited(item: EvalItem) -> Known:
            async with gate:
                return await self.know(item)

        tasks = [asyncio.create_task(limited(item)) for item in items]
        done: list[Segmented] = []
        try:
            for start in range(0, len(items), self.batch):
                part = slice(start, start + self.batch)
                known = await asyncio.gather(*tasks[part])
                done += await asyncio.to_thread(self._segment, items[part], known)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return done

    async def know(self, item: EvalItem) -> Known:
        """WebSense, IRAG and TPE for one sample."""
        trace: list[TraceStep] = []
        timings: list[Timing] = []
        evidence = Evidence()
        needed = True
        if self.websense is not None:
            began = time.perf_counter()
            verdict = await self.websense.decide(item.question)
            needed = verdict.needed
            trace.append(
                TraceStep(
                    module="websense",
                    input=item.question,
                    output="search" if needed else "no search",
                    values={"by": verdict.by, "reason": verdict.reason},
                )
            )
            timings.append(self._timing(item, "websense", began, verdict.cost))
        if needed and self.irag is not None:
            began = time.perf_counter()
            evidence = await self.irag.retrieve(item)
            trace += evidence.trace
            timings.append(self._timing(item, "irag", began, evidence.cost))
        began = time.perf_counter()
        if self.section.tpe:
            prompt = enhance(
                item.question,
                evidence.answer,
                evidence.background,
                wording=self.wording,
                prompt_chars=self.section.prompt_chars,
            )
        else:
            prompt = plain(item.question, evidence.answer, wording=self.wording)
        trace.append(prompt.trace)
        timings.append(self._timing(item, "tpe", began, Cost()))
        return Known(prompt=prompt.text, evidence=evidence, trace=tuple(trace), timings=tuple(timings))

    def _segment(self, items: Sequence[EvalItem], known: Sequence[Known]) -> list[Segmented]:
        """The models' part, in a thread of its own: segmenter, then VPE, over one batch of samples."""
        requests = [
            SegmentRequest(image=image, prompt=own.prompt)
            for item, own in zip(items, known, strict=True)
            for image in item.images
        ]
        results, seconds = segment_batched(self.segmenter, requests, batch=self.batch)
        first = list(results)
        steps: list[TraceStep | None] = [None] * len(results)
        checked_s = 0.0
        if self.vpe is not None:
            began = time.perf_counter()
            cases = self._cases(items, known, results)
            for place, outcome in enumerate(self.vpe.check(cases)):
                results[place] = outcome.result
                steps[place] = outcome.trace
            checked_s = (time.perf_counter() - began) / max(1, len(results))
        done: list[Segmented] = []
        start = 0
        for item, own in zip(items, known, strict=True):
            places = range(start, start + len(item.images))
            start = places.stop
            spent = [
                *own.timings,
                self._spent(item, "segmenter", sum(seconds[place] for place in places)),
                *([self._spent(item, "vpe", checked_s * len(places))] if self.vpe is not None else []),
            ]
            asked = assemble([first[p] for p in places], prompt=own.prompt, name=self.segmenter.name)
            final = assemble(
                [results[p] for p in places],
                prompt=own.prompt,
                name=self.segmenter.name,
                timings=tuple(spent),
                answer=own.evidence.answer,
            )
            checks = tuple(step for p in places if (step := steps[p]) is not None)
            done.append(
                Segmented(
                    masks=final.masks,
                    failures=final.failures,
                    answer=final.answer,
                    text=final.text,
                    trace=(*own.trace, *asked.trace, *checks),
                    timings=final.timings,
                )
            )
        return done

    def _cases(
        self, items: Sequence[EvalItem], known: Sequence[Known], results: Sequence[SegmentResult]
    ) -> list[VpeCase]:
        cases: list[VpeCase] = []
        for item, own in zip(items, known, strict=True):
            phrases = self.vpe_phrases(item.question)
            for image in item.images:
                result = results[len(cases)]
                cases.append(VpeCase(image=image, phrases=phrases, result=result, references=own.evidence.references))
        return cases

    def _timing(self, item: EvalItem, module: str, began: float, cost: Cost) -> Timing:
        seconds = time.perf_counter() - began
        return cost.timing(sample_id=item.sample_id, segmenter=self.name, module=module, seconds=seconds)

    def _spent(self, item: EvalItem, module: str, seconds: float) -> Timing:
        return Timing(sample_id=item.sample_id, segmenter=self.name, module=module, seconds=seconds)

"""The retrieval baseline: a search-enabled chat model answers, and the segmenter gets "please segment <answer>".

This is the paper's two-stage comparison (GPT-4o mini Search, Gemini-2.0 Flash Search). The model searches by itself, so
neither a cut-off nor blocked pages can be held against it: its figures may know more than ROSE's are allowed to, and
the trace says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.core.protocols import ChatModel, ChatRequest, EvalItem, Segmented, Segmenter, SegmentRequest
from engine.core.schema import ModelRef, Timing, TraceStep
from engine.llm.prompts import load_prompt
from inference.rose.cost import cost_of
from inference.rose.tpe import plain
from inference.segmenters.base import Wording, assemble, segment_batched
from inference.segmenters.bridge import note_loop
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.phrases import noun_of
from inference.segmenters.registry import build

PROMPT = "searchchat_v1"


class SearchChat:
    """The `Runner` of the baseline. A question that the model does not answer goes to the segmenter as it is."""

    def __init__(
        self,
        segmenter: Segmenter,
        chat: ChatModel,
        *,
        wording: Wording,
        max_in_flight: int = 16,
        batch: int = 8,
        name: str = "",
    ) -> None:
        self.name = name or f"search-chat:{segmenter.name}"
        self.segmenter = segmenter
        self.chat = chat
        self.wording = wording
        self.max_in_flight = max_in_flight
        self.batch = batch

    def models(self) -> tuple[ModelRef, ...]:
        return (*self.segmenter.models(), ModelRef(role="search_chat", name=self.chat.name))

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]:
        note_loop()
        gate = asyncio.Semaphore(self.max_in_flight)

        async def limited(item: EvalItem) -> tuple[str | None, TraceStep, Timing]:
            async with gate:
                return await self._answer(item)

        told = await asyncio.gather(*(limited(item) for item in items))
        prompts = [
            plain(item.question, answer, wording=self.wording) for item, (answer, _, _) in zip(items, told, strict=True)
        ]
        requests = [
            SegmentRequest(image=image, prompt=prompt.text)
            for item, prompt in zip(items, prompts, strict=True)
            for image in item.images
        ]
        results, seconds = await asyncio.to_thread(segment_batched, self.segmenter, requests, batch=self.batch)
        done: list[Segmented] = []
        start = 0
        for item, prompt, (answer, step, timing) in zip(items, prompts, told, strict=True):
            own = slice(start, start + len(item.images))
            start = own.stop
            spent = Timing(sample_id=item.sample_id, segmenter=self.name, module="segmenter", seconds=sum(seconds[own]))
            done.append(
                assemble(
                    results[own],
                    prompt=prompt.text,
                    name=self.segmenter.name,
                    timings=(timing, spent),
                    trace=(step, prompt.trace),
                    answer=answer,
                )
            )
        return done

    async def _answer(self, item: EvalItem) -> tuple[str | None, TraceStep, Timing]:
        began = time.perf_counter()
        system, user = load_prompt("inference.rose", PROMPT).fill(question=item.question, noun=noun_of(item.question))
        reply = await self.chat.complete(ChatRequest(system=system, user=user, max_tokens=200, purpose="search_chat"))
        said = " ".join(reply.text.split()).strip(" .\"'")
        answer = said if reply.status == "ok" and said and said.lower() != "unknown" else None
        step = TraceStep(
            module="search_chat",
            input=item.question,
            output=answer or "",
            values={"model": reply.model or self.chat.name, "status": reply.status, "bounded": "no"},
        )
        seconds = time.perf_counter() - began
        spent = cost_of(reply).timing(
            sample_id=item.sample_id, segmenter=self.name, module="search_chat", seconds=seconds
        )
        return answer, step, spent


def make_search_chat(inner: str, config: Config, *, deps: InferenceDeps) -> SearchChat:
    """The baseline around the segmenter `inner`. Raises `ConfigError` without a search-enabled model."""
    built = build(inner, config, deps=deps)
    if built.segmenter is None:
        raise ConfigError(f"'search-chat:{inner}' wraps a segmenter that takes a prompt, '{inner}' takes whole samples")
    if deps.search_chat is None:
        raise ConfigError(
            f"'search-chat:{inner}' needs a chat model that searches: set [score] options.search-chat.model to one "
            "(and endpoints.search-chat if it is not at [llm] base_url), and OPENAI_API_KEY"
        )
    return SearchChat(
        built.segmenter,
        deps.search_chat,
        wording=built.wording,
        max_in_flight=config.score.max_in_flight,
        batch=config.rose.batch,
        name=f"search-chat:{inner}",
    )

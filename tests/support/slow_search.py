"""A search that takes its time and writes down what it is asked, and runs of ROSE over it that can be killed.

As a program: `python -m support.slow_search FOLDER COUNT LATENCY_S` predicts COUNT samples into FOLDER, by shards.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from engine.core.config import Config, RoseSection, ScoreSection
from engine.core.protocols import EvalItem, ImageHit, TextHit
from engine.core.schema import Prediction
from engine.core.store import StageDir
from engine.web.search.record import RecordedSearch
from inference import predict
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make
from support.blocks import BlockDetector, BlockMasker, ColourEmbedder, scene

PICTURE = scene([((220, 20, 20), (5, 5, 60, 70)), ((20, 20, 220), (80, 20, 110, 60))])
SHARD = 16


class SlowSearch:
    """Answers each question after `latency_s`; the latency lies on the text search alone, once per sample."""

    name = "slow"

    def __init__(self, *, latency_s: float, log: Path | None = None) -> None:
        self.latency_s = latency_s
        self.log = log
        self.in_flight = 0
        self.most_in_flight = 0
        self.answered = 0

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        self._note(f"asked {query}")
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        self.answered += 1
        said = f"It is known that Mara Quist {query}. She did so twice."
        return [TextHit("https://a.example/1", "News", said, datetime(2026, 3, 1, tzinfo=UTC))]

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        shade = np.full((20, 20, 3), (20, 20, 220), np.uint8)
        return [ImageHit("https://a.example/q.png", query, shade, datetime(2026, 3, 1, tzinfo=UTC))]

    def _note(self, line: str) -> None:
        if self.log is None:
            return
        # one write of one line: a kill cannot tear it
        fd = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(fd, f"{line}\n".encode())
        finally:
            os.close(fd)


def items(count: int) -> list[EvalItem]:
    """Samples whose questions all differ."""
    until = datetime(2026, 3, 9, tzinfo=UTC)
    return [
        EvalItem(f"s{n:05d}", f"Which person in the image won the regatta number {n}?", (PICTURE,), until)
        for n in range(count)
    ]


def config() -> Config:
    return Config(rose=RoseSection(answerer="extract", batch=8), score=ScoreSection(shard_samples=64, max_in_flight=16))


def deps(search: object) -> InferenceDeps:
    return InferenceDeps(
        search=search,  # type: ignore[arg-type]
        make_detector=lambda _: BlockDetector(),
        make_mask_model=lambda _: BlockMasker(),
        make_embedder=lambda _: ColourEmbedder(),
    )


async def predict_into(folder: Path, count: int, latency_s: float) -> None:
    """Predict by shards into a stage directory; finished shards are not done again."""
    search = RecordedSearch(SlowSearch(latency_s=latency_s, log=folder / "asked.log"), folder / "search")
    runner = make("rose:portable", config(), deps=deps(search))
    place = StageDir(folder / "predictions")
    samples = items(count)
    shards = range(0, count, SHARD)
    for index, start in enumerate(shards):
        if not place.shard_done(index):
            part = samples[start : start + SHARD]
            found, _ = await predict.run(part, config().score, deps=predict.PredictDeps(runner))
            place.commit_shard(index, found, [])
    kept, _ = place.read_shards(Prediction, len(shards))
    place.commit(kept, [], stage="predict", found=count)


if __name__ == "__main__":
    asyncio.run(predict_into(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))

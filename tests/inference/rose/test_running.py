"""Running: many retrievals at a time, models meanwhile, restart without asking again, replay without a network."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.llm_server import Body, LlmServer, Scripted, completion
from support.slow_search import SlowSearch, config, deps, items, predict_into

from engine.core.config import Config, LlmSection, RoseSection
from engine.core.errors import TransientError
from engine.core.protocols import SegmentRequest, SegmentResult
from engine.llm.client import OpenAIChat
from engine.web.search.record import RecordedSearch
from inference import predict
from inference.rose.make import make_rose
from inference.segmenters.registry import make

ROOT = Path(__file__).parents[3]


async def test_retrieval_runs_up_to_the_limit_and_never_beyond() -> None:
    search = SlowSearch(latency_s=0.02)
    runner = make("rose:portable", config(), deps=deps(search))
    found, _ = await predict.run(items(80), config().score, deps=predict.PredictDeps(runner))
    assert len(found) == 80
    assert search.most_in_flight == 16
    assert search.answered == 80


async def test_models_work_while_later_samples_are_retrieved() -> None:
    search = SlowSearch(latency_s=0.03)
    rose = make_rose("portable", config(), deps=deps(search))
    done_at_call: list[int] = []
    inner = rose.segmenter.segment

    def segment(requests: list[SegmentRequest]) -> list[SegmentResult]:
        done_at_call.append(search.answered)
        time.sleep(0.05)
        return inner(requests)

    rose.segmenter.segment = segment  # type: ignore[method-assign]
    await rose.run(items(64))
    assert len(done_at_call) == 8
    assert done_at_call[0] < 64
    # eight rounds of models take 0.4 s and the retrieval of 64 samples 0.12 s, most of it meanwhile
    assert done_at_call[-1] == 64


async def test_a_search_that_stays_away_ends_the_run_and_leaves_no_task() -> None:
    class Away(SlowSearch):
        async def text(self, query: str, **more: object) -> list[object]:  # type: ignore[override]
            if query.endswith("9"):
                raise TransientError("the search is away")
            return await super().text(query, limit=1)  # type: ignore[return-value]

    before = len(asyncio.all_tasks())
    runner = make("rose:portable", config(), deps=deps(Away(latency_s=0.01)))
    with pytest.raises(TransientError, match="away"):
        await predict.run(items(40), config().score, deps=predict.PredictDeps(runner))
    assert len(asyncio.all_tasks()) == before


def asked(folder: Path) -> Counter[str]:
    log = folder / "asked.log"
    return Counter(log.read_text().splitlines()) if log.is_file() else Counter()


def recorded(folder: Path) -> set[str]:
    told = [json.loads(path.read_text())["asked"] for path in (folder / "search").rglob("[0-9a-f]*.json")]
    return {f"asked {one['query']}" for one in told if one["kind"] == "text"}


@pytest.mark.slow
def test_killed_halfway_nothing_that_was_answered_is_asked_again(tmp_path: Path) -> None:
    count = 96
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    asyncio.run(predict_into(undisturbed, count, 0.0))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "support.slow_search", str(killed), str(count), "0.15"]
    child = subprocess.Popen(command, env=environment, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 120
        while len(recorded(killed)) < count // 2 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    kept = recorded(killed)
    assert count // 2 <= len(kept) < count
    asyncio.run(predict_into(killed, count, 0.0))
    times = asked(killed)
    assert len(times) == count
    assert [question for question in kept if times[question] > 1] == []
    # what was in flight at the kill was never answered, and only that is asked again
    assert sum(times.values()) - count <= 16
    assert data(killed) == data(undisturbed)
    asyncio.run(predict_into(killed, count, 0.0))
    assert asked(killed) == times


def data(folder: Path) -> bytes:
    return (folder / "predictions" / "part-00000.jsonl").read_bytes()


def answerer(body: Body) -> Scripted:
    """Rewrites by dropping words, finds Mara Quist in whatever passage it is given."""
    said = json.dumps(body["messages"])
    if "search query for news" in said:
        return completion(json.dumps({"query": "who won the regatta"}))
    found = [{"name": "Mara Quist", "confidence": 0.9, "quote": "q"}]
    return completion(json.dumps({"answers": found}))


async def test_an_evaluation_is_replayed_with_everything_off(tmp_path: Path) -> None:
    samples = items(6)
    full = Config(rose=RoseSection(answerer="llm", batch=4), llm=LlmSection(model="m"))

    async def run(search: RecordedSearch, url: str) -> tuple[list[str], float]:
        section = LlmSection(base_url=url, model="m", prices={"m": (1.0, 1.0)})
        async with OpenAIChat(section, api_key="test-key", cache=tmp_path / "llm") as chat:
            runner = make("rose:portable", full, deps=replace(deps(search), chat=chat))
            found, timings = await predict.run(samples, full.score, deps=predict.PredictDeps(runner))
        return [prediction.line() for prediction in found], sum(timing.usd for timing in timings)

    slow = SlowSearch(latency_s=0.0)
    with LlmServer(reply=answerer) as server:
        first, cost = await run(RecordedSearch(slow, tmp_path / "search"), server.url)
        url, answered = server.url, server.answered
    # the server is gone and the search has no provider behind it
    again, nothing = await run(RecordedSearch(None, tmp_path / "search", name="slow", offline=True), url)
    assert again == first
    assert all('"answer":"Mara Quist"' in line for line in first)
    assert answered > 6
    assert cost > 0
    assert nothing == 0
    offline = RecordedSearch(None, tmp_path / "search", name="slow", offline=True)
    with pytest.raises(TransientError, match="never asked"):
        await offline.text("something new", limit=1, until=datetime(2026, 3, 9, tzinfo=UTC))

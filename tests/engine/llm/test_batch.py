"""Batches over the reply cache: submit, leave, come back, collect; partial failures; killed at each step."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.llm_server import LlmServer, completion

from engine.core.config import LlmSection
from engine.core.errors import BudgetSpent, ConfigError
from engine.core.protocols import ChatRequest
from engine.llm.batch import BatchQueue, Progress
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger
from engine.llm.plan import Deferred, PlanningChat, estimate

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PRICES = {"test-model": (1.0, 4.0)}


def settings(server: LlmServer, **more: Any) -> LlmSection:
    return LlmSection(base_url=server.url, model="test-model", prices=PRICES, **more)


def requests(count: int) -> list[ChatRequest]:
    return [ChatRequest("system", f"number {n}", SCHEMA) for n in range(count)]


def numbered(body: Any) -> Any:
    number = body["messages"][1]["content"].split()[1]
    return completion(f'{{"n": {number}}}', tokens=(50 + int(number), 7))


async def planned(config: LlmSection, home: Path, count: int) -> PlanningChat:
    """A planning chat that was asked for `count` requests."""
    chat = PlanningChat(config, cache=home / "cache")
    for request in requests(count):
        try:
            await chat.complete(request)
        except Deferred:
            continue
    return chat


async def visit(config: LlmSection, home: Path, count: int) -> Progress:
    """One visit as a run makes it: plan, then collect and submit."""
    wanted = (await planned(config, home, count)).wanted
    ledger = Ledger(home / "ledger")
    async with OpenAIChat(config, api_key="test-key", cache=home / "cache", ledger=ledger) as chat:
        return await BatchQueue(chat, folder=home / "batches").advance(wanted)


async def replies(config: LlmSection, home: Path, count: int) -> list[Any]:
    async with OpenAIChat(config, api_key="test-key", cache=home / "cache", ledger=Ledger(home / "ledger")) as chat:
        return [(await chat.complete(request)).data for request in requests(count)]


async def test_submit_leave_come_back_collect(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        config = settings(server)
        assert await visit(config, tmp_path, 6) == Progress(waiting=6, collected=0, failed=0, submitted=6, given_up=0)
        assert await visit(config, tmp_path, 6) == Progress(waiting=6, collected=0, failed=0, submitted=0, given_up=0)
        server.batches.finish()
        assert await visit(config, tmp_path, 6) == Progress(waiting=0, collected=6, failed=0, submitted=0, given_up=0)
        assert await replies(config, tmp_path, 6) == [{"n": n} for n in range(6)]
    assert server.answered == 0
    assert len(server.batches.batches) == 1


async def test_half_the_price_and_the_servers_sums(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        await visit(settings(server), tmp_path, 6)
        server.batches.finish()
        await visit(settings(server), tmp_path, 6)
    ledger = Ledger(tmp_path / "ledger")
    batches = server.batches
    assert batches.requests == 6
    assert ledger.month_usd() == pytest.approx(0.5 * (batches.tokens_in * 1 + batches.tokens_out * 4) / 1_000_000)


@pytest.mark.parametrize(("fate", "status"), [("error", "completed"), ("missing", "expired")])
async def test_what_failed_is_submitted_once_more_and_then_left_to_the_live_client(
    tmp_path: Path, fate: str, status: str
) -> None:
    with LlmServer(reply=numbered) as server:
        config = settings(server)
        first = sorted((await planned(config, tmp_path, 6)).wanted)
        server.batches.spoil = lambda custom_id: fate if custom_id in first[:2] else "ok"
        await visit(config, tmp_path, 6)
        server.batches.finish(status=status)
        second = await visit(config, tmp_path, 6)
        assert (second.collected, second.failed, second.submitted) == (4, 2, 2)
        server.batches.finish(status=status)
        third = await visit(config, tmp_path, 6)
        assert (third.failed, third.submitted, third.given_up, third.waiting) == (2, 0, 2, 0)
        assert await replies(config, tmp_path, 6) == [{"n": n} for n in range(6)]
    assert server.answered == 2


async def test_a_budget_that_does_not_reach_submits_nothing(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        with pytest.raises(BudgetSpent, match="batch of 6 requests"):
            await visit(settings(server, max_usd=0.0001), tmp_path, 6)
        assert not server.batches.batches


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
from engine.core.config import LlmSection
from engine.llm import batch
from engine.llm.cache import ReplyCache
from engine.llm.endpoint import Endpoint
from engine.llm.ledger import Ledger
import importlib.util
spec = importlib.util.spec_from_file_location("test_batch", {here!r})
test = importlib.util.module_from_spec(spec); spec.loader.exec_module(test)

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(holder, name, *, times=1):
    inner = getattr(holder, name)
    calls = []
    def wrapped(*args, **kwargs):
        found = inner(*args, **kwargs)
        calls.append(1)
        if len(calls) == times:
            die()
        return found
    setattr(holder, name, wrapped)

step = {step!r}
if step == "written down":
    after(batch.BatchQueue, "_write")
elif step in ("file sent", "batch made"):
    inner = batch.BatchQueue._call
    calls = []
    async def call(self, waiting):
        found = await inner(self, waiting)
        calls.append(1)
        if len(calls) == {{"file sent": 1, "batch made": 2}}[step]:
            die()
        return found
    batch.BatchQueue._call = call
elif step == "submitted":
    after(batch.BatchQueue, "_write", times=2)
elif step == "half collected":
    after(ReplyCache, "put", times=3)
elif step == "all in the cache":
    after(ReplyCache, "put", times=6)
elif step == "in the ledger":
    after(Ledger, "record")
elif step == "collected":
    after(batch.BatchQueue, "_write")
config = LlmSection(base_url={url!r}, model="test-model", prices=test.PRICES)
asyncio.run(test.visit(config, Path({home!r}), 6))
"""


def killed(server: LlmServer, home: Path, step: str) -> None:
    """A visit in a process of its own that kills itself at `step`."""
    script = KILLED.format(
        tests=str(Path(__file__).parents[2]),
        root=str(Path(__file__).parents[3]),
        here=__file__,
        step=step,
        url=server.url,
        home=str(home),
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == -signal.SIGKILL, found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("step", ["written down", "file sent", "batch made", "submitted"])
def test_killed_while_submitting(tmp_path: Path, step: str) -> None:
    """Whatever was reached, the next visits make exactly one batch of it."""
    with LlmServer(reply=numbered) as server:
        killed(server, tmp_path, step)
        asyncio.run(visit(settings(server), tmp_path, 6))
        assert len(server.batches.batches) == 1
        server.batches.finish()
        asyncio.run(visit(settings(server), tmp_path, 6))
        assert asyncio.run(replies(settings(server), tmp_path, 6)) == [{"n": n} for n in range(6)]
        assert server.batches.requests == 6
    assert server.answered == 0


@pytest.mark.slow
@pytest.mark.parametrize("step", ["half collected", "all in the cache", "in the ledger", "collected"])
def test_killed_while_collecting(tmp_path: Path, step: str) -> None:
    """Nothing is paid twice and the money is in the ledger once."""
    with LlmServer(reply=numbered) as server:
        asyncio.run(visit(settings(server), tmp_path, 6))
        server.batches.finish()
        killed(server, tmp_path, step)
        asyncio.run(visit(settings(server), tmp_path, 6))
        assert asyncio.run(replies(settings(server), tmp_path, 6)) == [{"n": n} for n in range(6)]
        batches = server.batches
        assert (len(batches.batches), batches.requests, server.answered) == (1, 6, 0)
        paid = 0.5 * (batches.tokens_in * 1 + batches.tokens_out * 4) / 1_000_000
        assert Ledger(tmp_path / "ledger").month_usd() == pytest.approx(paid)


# ---------------------------------------------------------------- estimates


async def test_an_estimate_bounds_what_is_then_paid(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        config = settings(server)
        told = estimate(await planned(config, tmp_path, 6), prices=PRICES)
        assert server.begun == 0
        await replies(config, tmp_path, 6)
        paid = Ledger(tmp_path / "ledger").month_usd()
    assert told.requests == 6
    assert told.usd_most is not None
    assert paid <= told.usd_most
    after = estimate(await planned(config, tmp_path, 6), prices=PRICES)
    assert (after.requests, after.answered, after.usd) == (0, 6, 0.0)
    assert estimate(await planned(config, tmp_path / "new", 6), prices={}).usd is None


# ---------------------------------------------------------------- what a provider may do meanwhile


async def test_a_batch_that_the_endpoint_knows_no_more_goes_out_anew(tmp_path: Path) -> None:
    """Removed there, or made under another account: nothing came of it, so nothing is kept of it."""
    with LlmServer(reply=numbered) as server:
        await visit(settings(server), tmp_path, 6)
        server.batches.batches.clear()
        again = await visit(settings(server), tmp_path, 6)
        assert (again.failed, again.submitted, again.waiting) == (6, 6, 6)
        server.batches.finish()
        await visit(settings(server), tmp_path, 6)
        assert await replies(settings(server), tmp_path, 6) == [{"n": n} for n in range(6)]
    assert server.answered == 0


async def test_results_that_were_removed_are_asked_for_anew(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        await visit(settings(server), tmp_path, 6)
        server.batches.finish()
        (batch,) = server.batches.batches.values()
        del server.batches.files[batch["output_file_id"]]
        again = await visit(settings(server), tmp_path, 6)
        assert (again.collected, again.failed, again.submitted) == (0, 6, 6)


async def test_line_separators_inside_a_reply_end_no_line(tmp_path: Path) -> None:
    """Servers may leave U+2028 and U+0085 unescaped, which Python takes for ends of lines."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    said = "one\u2028two\x85three\x0bfour"
    request = ChatRequest("system", "user", schema)
    with LlmServer(reply=lambda body: completion(f'{{"text": "{said[:9]}"}}')) as server:
        config = settings(server)
        chat = PlanningChat(config, cache=tmp_path / "cache")
        with pytest.raises(Deferred):
            await chat.complete(request)
        async with OpenAIChat(config, api_key="test-key", cache=tmp_path / "cache") as live:
            queue = BatchQueue(live, folder=tmp_path / "batches")
            await queue.advance(chat.wanted)
            server.batches.finish()
            for name, data in server.batches.files.items():
                if name != "file-0":
                    server.batches.files[name] = data.replace(rb"\u2028", "\u2028".encode()).replace(
                        rb"\u0085", "\x85".encode()
                    )
            progress = await queue.advance(chat.wanted)
        assert (progress.collected, progress.failed) == (1, 0)
        assert (await chat.complete(request)).data == {"text": said[:9]}


async def test_an_endpoint_without_batches_is_a_setting(tmp_path: Path) -> None:
    with LlmServer(reply=numbered) as server:
        server.batches.handle = lambda *_: (404, {"error": {"message": "no such route"}})  # type: ignore[method-assign]
        with pytest.raises(ConfigError, match="does it have a Batch API"):
            await visit(settings(server), tmp_path, 2)
    with LlmServer(reply=numbered, key="other") as server, pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        await visit(settings(server), tmp_path, 2)


@pytest.mark.parametrize("prices", [{"m": (-1.0, 1.0)}, {"m": (1.0, float("inf"))}, {"m": (float("nan"), 1.0)}])
def test_prices_that_would_undo_every_limit_are_refused(prices: dict[str, tuple[float, float]]) -> None:
    with pytest.raises(ValidationError):
        LlmSection(prices=prices)
    with pytest.raises(ValidationError):
        LlmSection(call_prices={name: min(pair) if pair[1] == 1.0 else pair[1] for name, pair in prices.items()})

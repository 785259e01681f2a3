"""The ledger: sums, prices, limits that are never passed, and a month that all runs share."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import LlmServer, Scripted, completion

from engine.core.config import LlmSection
from engine.core.errors import BudgetSpent, ConfigError
from engine.core.protocols import ChatRequest
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger, Limits

SCHEMA = {"type": "object"}
PRICES = {"test-model": (1.0, 4.0)}


def now() -> datetime:
    return datetime(2026, 11, 30, 12, tzinfo=UTC)


def spend(ledger: Ledger, usd: float | None, purpose: str = "ask.write") -> None:
    ledger.record(kind="llm", purpose=purpose, model="test-model", tokens_in=10, tokens_out=5, usd=usd)


def test_sums_by_purpose() -> None:
    ledger = Ledger()
    spend(ledger, 0.5)
    spend(ledger, 0.25, "blind")
    spend(ledger, None)
    assert ledger.spent().usd == 0.75
    assert ledger.spent().unpriced == 1
    assert ledger.by_purpose()["ask.write"].requests == 2
    assert ledger.summary()["total"]["requests"] == 3
    assert ledger.summary()["blind"]["usd"] == 0.25


def test_a_month_is_shared_by_runs_and_kinds(tmp_path: Path) -> None:
    first = Ledger(tmp_path, now=now, limits=Limits(monthly_usd=1.0))
    spend(first, 0.6)
    second = Ledger(tmp_path, now=now, limits=Limits(monthly_usd=1.0))
    second.record(kind="search", purpose="irag.search", model="brave", usd=0.3)
    assert first.month_usd() == pytest.approx(0.9)
    second.check(usd=0.1)
    with pytest.raises(BudgetSpent, match=r"month's limit of \$1.00"):
        second.check(usd=0.11)


def test_a_new_month_begins_at_nothing(tmp_path: Path) -> None:
    clock = [now()]
    ledger = Ledger(tmp_path, now=lambda: clock[0], limits=Limits(monthly_usd=1.0))
    spend(ledger, 0.9)
    clock[0] = datetime(2026, 12, 1, tzinfo=UTC)
    assert ledger.month_usd() == 0
    ledger.check(usd=0.9)


def test_a_limit_in_money_needs_the_price() -> None:
    config = LlmSection(model="test-model", max_usd=1.0)
    with pytest.raises(ConfigError, match="price of 'test-model' is not known"):
        OpenAIChat(config, api_key="k", cache=Path("unused"))
    Ledger.of(LlmSection(model="test-model", max_tokens=5)).require_price("test-model")


async def run_until_stopped(config: LlmSection, cache: Path, ledger: Ledger, count: int) -> int:
    """How many of `count` requests were answered before the budget stopped them."""
    async with OpenAIChat(config, api_key="test-key", cache=cache, ledger=ledger) as chat:
        found = await asyncio.gather(
            *(chat.complete(ChatRequest("s", f"request {n}", SCHEMA, max_tokens=120)) for n in range(count)),
            return_exceptions=True,
        )
    assert all(isinstance(item, BudgetSpent) for item in found if isinstance(item, BaseException))
    return sum(not isinstance(item, BaseException) for item in found)


@pytest.mark.parametrize("in_flight", [1, 8])
async def test_the_money_limit_is_never_passed_and_the_run_goes_on_from_there(tmp_path: Path, in_flight: int) -> None:
    """Each request costs 60 x 1 + 120 x 4 = 540 millionths; ten of them fit into 5,800."""
    config: dict[str, Any] = {"model": "test-model", "max_in_flight": in_flight, "prices": PRICES}
    with LlmServer(reply=lambda body: completion("{}", tokens=(60, 120)), latency_s=0.02) as server:
        limited = LlmSection(base_url=server.url, max_usd=0.0058, **config)
        ledger = Ledger.of(limited, tmp_path / "ledger")
        done = await run_until_stopped(limited, tmp_path / "cache", ledger, 30)
        assert done == server.answered == 10
        assert ledger.spent().usd <= 0.0058
        raised = LlmSection(base_url=server.url, max_usd=1.0, **config)
        again = Ledger.of(raised, tmp_path / "ledger")
        assert await run_until_stopped(raised, tmp_path / "cache", again, 30) == 30
        assert server.answered == 30
        assert max(server.seen.values()) == 1
    assert again.spent().requests == 20
    assert again.month_usd() == pytest.approx(30 * 0.00054)


async def test_the_token_limit(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion("{}", tokens=(60, 120))) as server:
        config = LlmSection(base_url=server.url, model="test-model", max_tokens=1_000)
        ledger = Ledger.of(config)
        done = await run_until_stopped(config, tmp_path, ledger, 20)
    total = ledger.spent()
    assert 0 < done < 6
    assert total.tokens_in + total.tokens_out <= 1_000


async def test_sums_are_what_the_server_counted(tmp_path: Path) -> None:
    """With failures and repetitions in between, every answered request is in the ledger once."""
    kinds = [
        completion("{}", tokens=(11, 3)),
        Scripted(500, {"error": {"message": "boom"}}),
        completion("no json", tokens=(12, 4)),
        completion("{}", tokens=(13, 5), finish="length"),
        Scripted(body={"error": {"message": "provider"}}),
        completion("{}", tokens=(17, 6)),
    ]
    with LlmServer(script=kinds * 8) as server:
        config = LlmSection(base_url=server.url, model="test-model", prices=PRICES, backoff_s=0.3, max_in_flight=4)
        ledger = Ledger.of(config, tmp_path / "ledger")
        async with OpenAIChat(config, api_key="test-key", cache=tmp_path / "cache", ledger=ledger) as chat:
            await asyncio.gather(*(chat.complete(ChatRequest("s", str(n), SCHEMA)) for n in range(16)))
        total = ledger.spent()
        assert total.requests == server.answered
        assert (total.tokens_in, total.tokens_out) == (server.tokens_in, server.tokens_out)
        assert total.usd == pytest.approx((server.tokens_in * 1 + server.tokens_out * 4) / 1_000_000)
        assert ledger.month_usd() == pytest.approx(total.usd)


async def test_a_server_that_does_not_count_is_not_free(tmp_path: Path) -> None:
    body = dict(completion("{}").body)  # type: ignore[arg-type]
    body.pop("usage")
    with LlmServer(reply=lambda _: Scripted(body=body)) as server:
        config = LlmSection(base_url=server.url, model="test-model", prices=PRICES, max_usd=1.0)
        ledger = Ledger.of(config)
        async with OpenAIChat(config, api_key="test-key", cache=tmp_path, ledger=ledger) as chat:
            await chat.complete(ChatRequest("s" * 300, "u", SCHEMA))
    assert ledger.spent().usd > 0

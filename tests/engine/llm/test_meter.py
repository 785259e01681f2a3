"""Searches and web detections pay into the same ledger as tokens, from the same month's purse."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from support.loopback import Reply, Site

from engine.core.config import LlmSection, RoseSection
from engine.core.errors import BudgetSpent, ConfigError, TransientError
from engine.core.protocols import Fetched
from engine.llm.ledger import Ledger
from engine.web.search.api import Api
from engine.web.search.engines import Brave
from engine.web.search.pages import ReadPage
from engine.web.search.record import RecordedSearch
from engine.web.search.registry import SearchSet
from engine.web.search.vision import GoogleVision

CALLS = {"brave": 0.005, "google-vision": 0.0035}
FOUND = json.dumps({"web": {"results": [{"url": "http://a.example/1", "title": "t"}]}}).encode()
SEEN = json.dumps({"responses": [{"webDetection": {"webEntities": [{"description": "x", "score": 1.0}]}}]}).encode()
JSON = {"Content-Type": "application/json"}


class Pages:
    async def fetch(self, url: str, *, kind: str) -> Fetched:
        return Fetched(url, 200, {}, b"page")


def read(body: bytes, url: str) -> ReadPage:
    return ReadPage(url, "title", "text")


def ledger(folder: Path, **settings: object) -> Ledger:
    told = LlmSection(call_prices=CALLS, prices={"m": (1.0, 1.0)}, **settings)  # type: ignore[arg-type]
    return Ledger.of(told, folder)


def brave(site: Site, paid: Ledger) -> Brave:
    return Brave("k", fetcher=Pages(), read=read, host=site.url("")).metered(paid.meter("brave", "search"))


def kinds(folder: Path) -> list[str]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line)["kind"] for line in path.read_text().splitlines()]


async def test_one_month_for_models_vision_and_search(tmp_path: Path) -> None:
    """Half the purse went to a model in an earlier run; searches and a detection use up the rest, and then all stop."""
    earlier = ledger(tmp_path)
    earlier.record(kind="llm", purpose="ask.write", model="m", tokens_in=10_000, usd=0.01)
    paid = ledger(tmp_path, monthly_usd=0.02)
    routes = {"/res/v1/web/search": Reply(FOUND, headers=JSON), "/v1/images:annotate": Reply(SEEN, headers=JSON)}
    async with Site(routes) as site:
        search = brave(site, paid)
        vision = GoogleVision("k", host=site.url("")).metered(paid.meter("google-vision", "vision"))
        assert len(await search.text("one", limit=1)) == 1
        assert len(await vision.entities(np.zeros((20, 30, 3), np.uint8))) == 1
        with pytest.raises(BudgetSpent, match=r"month's limit of \$0\.02"):
            await search.text("two", limit=1)
        with pytest.raises(BudgetSpent):
            await paid.hold(usd=0.002, tokens=10)
        await search.close()
        await vision.close()
        assert len(site.seen) == 2
    assert paid.month_usd() == pytest.approx(0.01 + 0.005 + 0.0035)
    assert kinds(tmp_path) == ["llm", "search", "vision"]


async def test_searches_side_by_side_do_not_overdraw(tmp_path: Path) -> None:
    paid = ledger(tmp_path, max_usd=0.012)
    async with Site({"/res/v1/web/search": Reply(FOUND, headers=JSON, first_s=0.05)}) as site:
        search = brave(site, paid)
        found = await asyncio.gather(*(search.text(f"q{n}", limit=1) for n in range(8)), return_exceptions=True)
        await search.close()
        assert len(site.seen) == 2
    assert sum(isinstance(item, BudgetSpent) for item in found) == 6
    assert paid.spent().usd == pytest.approx(0.01)


async def test_a_failed_call_costs_nothing_and_a_recorded_one_neither(tmp_path: Path) -> None:
    paid = ledger(tmp_path / "ledger")
    answers = iter([Reply(b"{}", status=503), Reply(FOUND, headers=JSON)])
    async with Site({"/res/v1/web/search": lambda request: next(answers)}) as site:

        async def at_once(seconds: float) -> None:
            return None

        api = Api("Brave Search", sleep=at_once)
        made = Brave("k", fetcher=Pages(), read=read, host=site.url(""), api=api).metered(paid.meter("brave", "search"))
        search = RecordedSearch(made, tmp_path / "record")
        for _ in range(3):
            assert len(await search.text("q", limit=1)) == 1
        await made.close()
    told = paid.spent()
    assert (told.requests, told.failed, told.usd) == (2, 1, pytest.approx(0.005))


async def test_nobody_there_costs_nothing(tmp_path: Path) -> None:
    paid = ledger(tmp_path, max_usd=1.0)

    async def at_once(seconds: float) -> None:
        return None

    api = Api("Brave Search", sleep=at_once)
    search = Brave("k", fetcher=Pages(), read=read, host="http://127.0.0.1:9", api=api)
    search.metered(paid.meter("brave", "search"))
    with pytest.raises(TransientError):
        await search.text("q", limit=1)
    await search.close()
    assert paid.spent().usd == 0
    assert paid.too_much(usd=1.0) is None


def test_a_service_without_a_price_is_refused_under_a_limit(tmp_path: Path) -> None:
    wanted = RoseSection(search=("brave",), image_entities="google-vision")
    keys = {"BRAVE_API_KEY": "k", "GOOGLE_API_KEY": "k"}

    def make(paid: Ledger) -> SearchSet:
        return SearchSet(wanted, local=None, secrets=keys, cache=tmp_path, fetcher=Pages(), read=read, meter=paid.meter)

    with pytest.raises(ConfigError, match="the price of a call of 'brave' is not known"):
        make(Ledger.of(LlmSection(monthly_usd=5.0)))
    with pytest.raises(ConfigError, match="google-vision"):
        make(Ledger.of(LlmSection(max_usd=5.0, call_prices={"brave": 0.0})))
    assert make(Ledger.of(LlmSection(max_usd=5.0, call_prices=CALLS))).search is not None
    assert make(Ledger()).search is not None

"""Limits of money and tokens through the command: a clean stop with exit code 3, and going on where it stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.week import WINDOW, Week, asked

from engine.llm.ledger import Ledger

PRICES = {"llm.prices": {"test-model": [100.0, 400.0]}}


@pytest.mark.parametrize(("option", "value", "settings"), [("--max-usd", "0.85", PRICES), ("--max-tokens", "4300", {})])
def test_a_limit_stops_cleanly_and_the_next_run_goes_on(
    collected: Callable[..., Week], undisturbed: Week, option: str, value: str, settings: dict[str, object]
) -> None:
    with collected(**settings, **{"ask.reply_tokens": 1200}) as week:
        stopped = week.nest("ask", "--window", WINDOW, option, value, code=3)
        assert "limit of" in stopped.stderr
        assert "raise it to go on" in stopped.stderr
        assert len(stopped.stderr.strip().splitlines()) <= 4
        first = week.llm.answered
        assert 0 < first < undisturbed.llm.answered
        spent = Ledger(week.home / "ledger").month_usd()
        assert spent <= 0.85
        week.nest("ask", "--window", WINDOW)
        assert week.llm.answered == undisturbed.llm.answered == len(week.llm.seen)
    assert asked(week.home) == asked(undisturbed.home)


def test_the_month_is_one_purse_for_all_runs(collected: Callable[..., Week]) -> None:
    with collected(**PRICES, **{"llm.monthly_usd": 0.85}) as week:
        stopped = week.nest("ask", "--window", WINDOW, code=3)
        assert "month's limit of $0.85" in stopped.stderr
        before = week.llm.answered
        assert before > 0
        again = week.nest("ask", "--window", WINDOW, code=3)
        assert "month's limit" in again.stderr
        # what was answered is answered from the cache; what is left of the month pays for nothing more
        assert week.llm.answered == before


def test_a_model_without_a_price_is_refused_under_a_limit(collected: Callable[..., Week]) -> None:
    with collected() as week:
        done = week.nest("ask", "--window", WINDOW, "--max-usd", "5", code=2)
        assert "the price of 'test-model' is not known" in done.stderr
        assert week.llm.begun == 0


def test_a_paid_search_without_a_price_is_refused_under_a_limit(collected: Callable[..., Week]) -> None:
    settings = {**PRICES, "llm.monthly_usd": 50.0, "ask.encyclopedia": ["brave"]}
    with collected(**settings) as week:
        done = week.nest("ask", "--window", WINDOW, code=2, env={"BRAVE_API_KEY": "planted"})
        assert "the price of a call of 'brave' is not known" in done.stderr
        assert "planted" not in done.stderr
        no_key = week.nest("ask", "--window", WINDOW, code=2)
        assert "BRAVE_API_KEY is not set" in no_key.stderr
        assert week.llm.begun == 0

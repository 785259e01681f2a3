"""The Batch API through the command: submit, leave with exit code 3, come back, and the same bytes as a live run."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from support.killed_batches import COLLECTING, SUBMITTING
from support.week import ROOT, WINDOW, Week, asked, rubbish

from engine.llm.ledger import Ledger

PRICES = {"llm.prices": {"test-model": [1.0, 4.0]}}


def paid(week: Week) -> float:
    batches = week.llm.batches
    return 0.5 * (batches.tokens_in * 1.0 + batches.tokens_out * 4.0) / 1_000_000


def test_submit_leave_come_back(collected: Callable[..., Week], undisturbed: Week) -> None:
    with collected(**PRICES) as week:
        first = week.nest("ask", "--window", WINDOW, "--batch", code=3)
        assert "wait for their batch" in first.stderr
        waiting = week.nest("ask", "--window", WINDOW, "--batch", code=3)
        assert "0 sent" in waiting.stderr
        week.llm.batches.finish()
        week.nest("ask", "--window", WINDOW, "--batch")
        assert "nothing to do" in week.nest("ask", "--window", WINDOW).stderr
        assert (week.llm.answered, len(week.llm.batches.batches)) == (0, 1)
        assert Ledger(week.home / "ledger").month_usd() == pytest.approx(paid(week))
    assert asked(week.home) == asked(undisturbed.home)


def test_what_failed_in_two_batches_is_asked_live(collected: Callable[..., Week], undisturbed: Week) -> None:
    with collected(**PRICES) as week:
        week.nest("ask", "--window", WINDOW, "--batch", code=3)
        (batch,) = week.llm.batches.batches.values()
        lines = week.llm.batches.files[batch["input_file_id"]].decode().splitlines()
        victim = min(line.split('"custom_id": "')[1][:64] for line in lines)
        week.llm.batches.spoil = lambda custom_id: "error" if custom_id == victim else "ok"
        week.llm.batches.finish()
        again_sent = week.nest("ask", "--window", WINDOW, "--batch", code=3)
        assert "1 requests failed, 1 sent" in again_sent.stderr
        week.llm.batches.finish()
        week.nest("ask", "--window", WINDOW, "--batch")
        assert week.llm.answered == 1
    assert asked(week.home) == asked(undisturbed.home)


@pytest.mark.slow
@pytest.mark.parametrize("step", [*SUBMITTING, *COLLECTING])
def test_killed_at_each_step(collected: Callable[..., Week], undisturbed: Week, step: str) -> None:
    """Wherever it dies: one batch, nothing asked twice, the money counted once, the same bytes."""
    words = ("ask", "--window", WINDOW, "--batch")
    with collected(**PRICES) as week:
        if step in COLLECTING:
            week.nest(*words, code=3)
            week.llm.batches.finish()
        environment = {**week.env(), "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-m", "support.killed_batches", step, *words],
            cwd=week.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        if step in SUBMITTING:
            week.nest(*words, code=3)
            week.llm.batches.finish()
        week.nest(*words)
        assert (week.llm.answered, len(week.llm.batches.batches)) == (0, 1)
        assert Ledger(week.home / "ledger").month_usd() == pytest.approx(paid(week))
        assert rubbish(week.home) == []
    assert asked(week.home) == asked(undisturbed.home)


@pytest.mark.slow
def test_a_backfill_submits_every_window_and_ends_with_3(collected: Callable[..., Week]) -> None:
    """By the whole flow, twice: one visit submits, the next builds the snapshot."""
    day = ("--from", "2026-11-16", "--to", "2026-11-22", "--batch")
    with collected(**PRICES) as week:
        first = week.nest("backfill", *day, code=3)
        assert "wait for their batch" in first.stderr
        assert not list(week.home.glob("snapshots/*/snapshot.json"))
        week.llm.batches.finish()
        week.nest("backfill", *day)
        assert week.llm.answered == 0
    assert list(week.home.glob("snapshots/*/snapshot.json"))


def test_a_limit_holds_for_batches_too(collected: Callable[..., Week]) -> None:
    with collected(**PRICES) as week:
        done = week.nest("ask", "--window", WINDOW, "--batch", "--max-usd", "0.0001", code=3)
        assert "may cost too much" in done.stderr
        assert not week.llm.batches.batches


def test_an_endpoint_without_batches_says_so(collected: Callable[..., Week]) -> None:
    with collected(**PRICES, **{"llm.base_url": "http://127.0.0.1:9/v1"}) as week:
        done = week.nest("ask", "--window", WINDOW, "--batch", code=3)
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4

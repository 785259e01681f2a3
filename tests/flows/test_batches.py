"""The Batch API through the command: submit, leave with exit code 3, come back, and the same bytes as a live run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.killed_batches import COLLECTING, SUBMITTING
from support.week import ROOT, SMALL, WINDOW, Week, digests, rubbish

from engine.llm.ledger import Ledger

PRICES = {"llm.prices": {"test-model": [1.0, 4.0]}}


@pytest.fixture(scope="module")
def collected(undisturbed: Week, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the news of the window lie, and nothing else is done."""
    home = tmp_path_factory.mktemp("collected") / "home"
    shutil.copytree(
        undisturbed.home, home, ignore=shutil.ignore_patterns("llm", "ledger", "ask", "annotate", "snapsh*")
    )
    return home


def again(collected: Path, folder: Path, **settings: object) -> Week:
    week = Week(folder, overrides={**SMALL, **PRICES, **settings})
    shutil.copytree(collected, week.home)
    return week


def asked(home: Path) -> dict[str, str]:
    """Digests of what the stage made, without the clock's part."""
    (stage,) = (path.parent for path in home.glob("windows/*/ask/*/manifest.json"))
    found = digests(stage)
    return {name: value for name, value in found.items() if not name.endswith("run.json") and "lock" not in name}


def paid(week: Week) -> float:
    batches = week.llm.batches
    return 0.5 * (batches.tokens_in * 1.0 + batches.tokens_out * 4.0) / 1_000_000


def test_submit_leave_come_back(collected: Path, undisturbed: Week, tmp_path: Path) -> None:
    with again(collected, tmp_path) as week:
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


def test_what_failed_in_two_batches_is_asked_live(collected: Path, undisturbed: Week, tmp_path: Path) -> None:
    with again(collected, tmp_path) as week:
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
def test_killed_at_each_step(collected: Path, undisturbed: Week, tmp_path: Path, step: str) -> None:
    """Wherever it dies: one batch, nothing asked twice, the money counted once, the same bytes."""
    words = ("ask", "--window", WINDOW, "--batch")
    with again(collected, tmp_path) as week:
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
def test_a_backfill_submits_every_window_and_ends_with_3(collected: Path, tmp_path: Path) -> None:
    """By the whole flow, twice: one visit submits, the next builds the snapshot."""
    day = ("--from", "2026-11-16", "--to", "2026-11-22", "--batch")
    with again(collected, tmp_path, **{"collect.limit": None}) as week:
        week.write_config({**SMALL, **PRICES, "ask.writer": "llm"})
        first = week.nest("backfill", *day, code=3)
        assert "wait for their batch" in first.stderr
        assert not list(week.home.glob("snapshots/*/snapshot.json"))
        week.llm.batches.finish()
        week.nest("backfill", *day)
        assert week.llm.answered == 0
    assert list(week.home.glob("snapshots/*/snapshot.json"))


def test_a_limit_holds_for_batches_too(collected: Path, tmp_path: Path) -> None:
    with again(collected, tmp_path) as week:
        done = week.nest("ask", "--window", WINDOW, "--batch", "--max-usd", "0.0001", code=3)
        assert "may cost too much" in done.stderr
        assert not week.llm.batches.batches


def test_an_endpoint_without_batches_says_so(collected: Path, tmp_path: Path) -> None:
    with again(collected, tmp_path, **{"llm.base_url": "http://127.0.0.1:9/v1"}) as week:
        done = week.nest("ask", "--window", WINDOW, "--batch", code=3)
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4

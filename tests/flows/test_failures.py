"""What goes wrong at three in the morning: a dead endpoint, a wrong key, a full disk, two runs at once."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.week import WINDOW, Week, rubbish

SMALL = {"collect.limit": 6, "llm.patience_s": 0.5, "llm.backoff_s": 0.3}


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Week:
    with Week(tmp_path_factory.mktemp("collected"), overrides=SMALL) as week:
        week.nest("collect", "--window", WINDOW)
    return week


def _again(week: Week, tmp_path: Path, **overrides: object) -> Week:
    """Another week over the same home: the collected pages are there already."""
    other = Week(tmp_path, overrides={**SMALL, **overrides})
    other.home = week.home
    return other


def test_an_unreachable_endpoint_leaves_the_work_undone(collected: Week, tmp_path: Path) -> None:
    with _again(collected, tmp_path, **{"llm.base_url": "http://127.0.0.1:9/v1"}) as week:
        done = week.nest("ask", "--window", WINDOW, code=3)
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4
    assert not list(collected.home.glob("windows/*/ask/*/manifest.json"))


def test_a_wrong_key_is_a_setting_not_a_failure(collected: Week, tmp_path: Path) -> None:
    with _again(collected, tmp_path) as week:
        done = week.nest("ask", "--window", WINDOW, code=2, env={"OPENAI_API_KEY": "sk-planted-wrong"})
    assert "OPENAI_API_KEY" in done.stderr
    assert "planted" not in done.stderr


def test_no_key_at_all(collected: Week, tmp_path: Path) -> None:
    with _again(collected, tmp_path) as week:
        done = week.nest("ask", "--window", WINDOW, code=2, env={"OPENAI_API_KEY": ""})
    assert "OPENAI_API_KEY" in done.stderr


def test_a_second_run_of_the_same_window_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with Week(tmp_path, overrides=SMALL, latency_s=3.0) as week:
        week.nest("collect", "--window", WINDOW)
        first = week.start("ask", "--window", WINDOW)
        deadline = time.monotonic() + 60
        while week.llm.begun == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        second = week.nest("ask", "--window", WINDOW, code=4)
        assert str(first.pid) in second.stderr
        assert first.wait(timeout=120) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_state_to_go_on_from(tmp_path: Path, number: signal.Signals) -> None:
    with Week(tmp_path, overrides=SMALL, latency_s=1.0) as week:
        week.nest("collect", "--window", WINDOW)
        run = week.start("ask", "--window", WINDOW)
        deadline = time.monotonic() + 60
        while week.llm.begun == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(number)
        assert run.wait(timeout=60) == 130
        assert "interrupted" in (tmp_path / "log.txt").read_text()
        assert "Traceback" not in (tmp_path / "log.txt").read_text()
        week.nest("ask", "--window", WINDOW)
        assert week.paid_twice() == [] or week.llm.answered <= len(week.llm.seen) + 2
        assert rubbish(week.home) == []


@pytest.mark.system
def test_a_full_disk_is_a_sentence_and_space_is_all_it_takes(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)], check=False).returncode
    ):
        pytest.skip("a small file system can only be mounted by root")
    try:
        with Week(tmp_path / "week", overrides=SMALL) as week:
            week.home = small / "home"
            week.write_config(week.settings)
            done = week.nest("collect", "--window", WINDOW, code=1)
            assert "cannot be written" in done.stderr
            assert rubbish(week.home) == []
            subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
            week.nest("collect", "--window", WINDOW)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)

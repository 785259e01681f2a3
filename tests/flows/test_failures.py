"""What goes wrong at three in the morning: a dead endpoint, a wrong key, a full disk, two runs at once."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.week import WINDOW, Week, ready_database, rubbish

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


def test_a_key_that_expires_in_the_middle_pauses_the_stage(tmp_path: Path) -> None:
    with Week(tmp_path, overrides={**SMALL, "ask.batch_articles": 1, "llm.max_in_flight": 1}, latency_s=0.3) as week:
        week.nest("collect", "--window", WINDOW)
        run = week.start("ask", "--window", WINDOW)
        deadline = time.monotonic() + 60
        while week.llm.answered < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        week.llm.key = "sk-renewed-afterwards"
        assert run.wait(timeout=60) == 3
        said = (tmp_path / "log.txt").read_text()
        assert "refuses it now" in said
        assert "planted" not in said
        week.nest("ask", "--window", WINDOW)  # the environment has the new key
        assert week.paid_twice() == []


@pytest.mark.slow
def test_two_refreshes_of_one_window_at_once(tmp_path: Path) -> None:
    """In somebody's shell the second is refused and names the first; the first goes on undisturbed."""
    with Week(tmp_path, overrides={**SMALL, "score.segmenters": []}, latency_s=30.0) as week:
        ready_database(week.home, tmp_path / "cache")
        first = week.start("refresh", "--window", WINDOW)
        deadline = time.monotonic() + 120
        while week.llm.begun == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        second = week.nest("refresh", "--window", WINDOW, code=4)
        assert f"process {first.pid}" in second.stderr
        week.llm.latency_s = 0.0
        assert first.wait(timeout=240) == 0, (tmp_path / "log.txt").read_text()
        assert week.paid_twice() == []
        assert rubbish(week.home) == []


@pytest.mark.system
def test_a_read_only_store_can_be_looked_at_and_says_so(collected: Week, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("a file system can only be mounted by root")
    try:
        shutil.copytree(collected.home, place / "home")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        with Week(tmp_path / "week", overrides=SMALL) as week:
            # the same settings as those that the pages were collected under
            text = (collected.folder / "nest.toml").read_text()
            (week.folder / "nest.toml").write_text(text.replace(str(collected.home), str(place / "home")))
            assert WINDOW in week.nest("status").stdout
            assert "nothing to do" in week.nest("collect", "--window", WINDOW).stderr
            done = week.nest("ask", "--window", WINDOW, code=1)
            assert "cannot be written" in done.stderr
            assert "cannot be written" in week.nest("refresh", "--window", WINDOW, code=2).stderr
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_refresh_says_all_that_is_missing_before_it_begins(tmp_path: Path) -> None:
    with Week(tmp_path, overrides={**SMALL, "score.segmenters": ["portabel"]}) as week:
        told = (tmp_path / "nest.toml").read_text()
        (tmp_path / "nest.toml").write_text(told.replace('type = "sitemap"', 'type = "sitemapp"'))
        done = week.nest("refresh", "--window", WINDOW, code=2, env={"OPENAI_API_KEY": ""})
        for said in ("OPENAI_API_KEY", "portable", "did you mean 'sitemap'"):
            assert said in done.stderr
        assert not (week.home / "windows").exists()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('type = "feedd"\nurl = "https://x.example/feed"', "did you mean 'feed'"),
        ('url = "x.example/feed"', "is not an address"),
        ('url = "ftp://x.example/feed"', "is not an address"),
        ('url = "https://"', "is not an address"),
        ('url = "http://[::1"', "is not an address"),
        ('url = "https://x.example:99999/feed"', "is not an address"),
        ("", "is not an address"),
        ('type = "archive"\nurl = "none.warc.gz"', "there is no file"),
    ],
)
def test_a_source_that_cannot_be_is_refused_before_anything_is_fetched(tmp_path: Path, row: str, said: str) -> None:
    (tmp_path / "nest.toml").write_text(f'[[source]]\nname = "x"\n{row}\n')
    from flows.cli import _run

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        for name in ("NEST_CONFIG", "NEST_HOME"):
            patch.delenv(name, raising=False)
        told: list[str] = []
        patch.setattr("flows.console.say", told.append)
        patch.setattr("flows.console.out", lambda text: None)
        assert _run(["config"]) == 2
    assert said in told[-1]
    assert "'x'" in told[-1]


def test_a_home_with_a_tilde_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.core.config import load_config
    from engine.core.errors import ConfigError

    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_config(environ={"NEST_HOME": "~/x"}).home == tmp_path / "x"
    (tmp_path / "nest.toml").write_text('home = "~/y"\n')
    assert load_config(tmp_path / "nest.toml", environ={}).home == tmp_path / "y"
    with pytest.raises(ConfigError, match="not known here"):
        load_config(environ={"NEST_HOME": "~no-such-user-here/x"})


@pytest.mark.parametrize(
    ("url", "settings", "code", "said"),
    [
        ("http://127.0.0.1:9/api", {}, 3, "does not answer"),
        ("nonsense", {}, 2, "is not an address"),
        ("", {"flows.annotate_deployment": "annotate/gpu"}, 2, "set PREFECT_API_URL"),
        ("", {"flows.task_runner": "prefect_desk:Runner"}, 2, "is not installed"),
    ],
)
def test_a_server_that_is_not_there(
    tmp_path: Path, url: str, settings: dict[str, object], code: int, said: str
) -> None:
    with Week(tmp_path, overrides={**SMALL, "score.segmenters": [], **settings}) as week:
        done = week.nest("refresh", "--window", WINDOW, code=code, env={"PREFECT_API_URL": url} if url else {})
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) <= 2
        words = ("backfill", "--from", "2026-11-16", "--to", "2026-11-22", "--deployment", "refresh/backfill")
        if url:
            assert said in week.nest(*words, code=code, env={"PREFECT_API_URL": url}).stderr

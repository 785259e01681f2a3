"""Windows of scheduled runs: derived from the time they were scheduled for, touching, whatever clocks do."""

import itertools
import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from prefect.runtime import flow_run as runtime

from engine.core.errors import RefusedError
from engine.core.windows import latest_window, parse_window, require_closed
from flows.catchup import first_day, weeks
from flows.run import Run, open_run, run_for
from flows.schedule import scheduled_window
from flows.stages import collect

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "tests" / "data" / "cases" / "52-weekly-dst"


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((CASE / "schedule.json").read_text())
    return found


def test_weeks_over_a_change_of_clocks_touch_and_have_168_hours(told: dict[str, list[str]]) -> None:
    ticks = [datetime.fromisoformat(tick) for tick in told["ticks"]]
    windows = [latest_window(tick.astimezone(UTC), lag_days=2) for tick in ticks]
    for window in windows:
        assert window.end - window.start == timedelta(hours=168)
        assert (window.start.weekday(), window.start.hour) == (0, 0)
    for group in (windows[:3], windows[3:]):
        for one, next_one in itertools.pairwise(group):
            assert one.end == next_one.start


def test_the_window_is_the_scheduled_times_not_the_starts(
    told: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that starts hours or a day late keeps its week, and a week that is over is never refused for that."""
    (tmp_path / "nest.toml").write_text("[window]\nlag_days = 2\n")
    for tick, late in zip(told["ticks"], told["actual_starts"], strict=True):
        scheduled = datetime.fromisoformat(tick).astimezone(UTC)
        monkeypatch.setitem(runtime.FIELDS, "scheduled_start_time", partial(datetime.fromisoformat, str(scheduled)))
        window = parse_window(scheduled_window(tmp_path / "nest.toml"))
        assert scheduled - timedelta(days=9) <= window.end <= scheduled - timedelta(days=2)
        begun = datetime.fromisoformat(late).astimezone(UTC)
        assert begun >= scheduled
        require_closed(window, begun)


def test_every_cron_line_says_utc_and_every_schedule_has_a_slug() -> None:
    told = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
    assert told["pull"] == []
    names = {deployment["name"] for deployment in told["deployments"]}
    assert names == {"six-hourly", "weekly", "backfill", "daily", "gpu", "score"}
    schedules = [s for deployment in told["deployments"] for s in deployment.get("schedules", ())]
    assert len(schedules) == 3
    for schedule in schedules:
        assert schedule["timezone"] == "UTC"
        assert schedule["slug"]
    for deployment in told["deployments"]:
        assert re.fullmatch(r"flows(\.\w+)+", deployment["entrypoint"]), "a module, not a file"


@given(st.integers(0, 15 * 366 * 86_400), st.integers(0, 10))
def test_one_week_later_is_the_next_window(seconds: int, lag: int) -> None:
    now = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    one, following = latest_window(now, lag_days=lag), latest_window(now + timedelta(days=7), lag_days=lag)
    assert one.end == following.start
    require_closed(one, now)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    overrides = {"home": str(tmp_path / "home"), "source": [{"name": "x", "url": "https://news.example/feed"}]}
    return open_run("2026-W40", overrides=overrides)


def test_a_clock_that_jumps_changes_no_key_and_reopens_no_week(run: Run) -> None:
    """Back by months, the week is not over yet and is refused; forward by years, nothing of it is another."""
    with pytest.raises(RefusedError, match="future"):
        run_for(run.config, run.window.label, now=datetime(2026, 3, 1, tzinfo=UTC))
    ahead = run_for(run.config, run.window.label, now=datetime(2031, 3, 1, tzinfo=UTC))
    assert collect.place(ahead).path == collect.place(run).path


def test_the_catch_up_looks_back_to_the_homes_first_window(run: Run) -> None:
    now = datetime(2026, 11, 30, 3, 30, tzinfo=UTC)
    assert weeks(run.config, now) == []
    for label in ("261109_261115", "261102_261108", "not_a_window"):
        (run.home.root / "windows" / label).mkdir(parents=True)
    assert first_day(run.home.root) == parse_window("261102_261108").first
    assert [window.label for window in weeks(run.config, now)] == ["261102_261108", "261109_261115", "261116_261122"]
    short = run.config.model_copy(update={"flows": run.config.flows.model_copy(update={"catch_up_weeks": 1})})
    assert [window.label for window in weeks(short, now)] == ["261116_261122"]

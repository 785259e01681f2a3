"""Backfill: the plan and what it promises, failures that stop nobody, several windows at a time, exit codes."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.core.config import load_config
from engine.core.errors import ConfigError, NestError, TerminalError, TransientError
from engine.core.schema import DateWitness, Link
from engine.news.harvest import _file
from flows import backfill, backfill_do
from flows.backfill import How, Line, backfill_range, plan
from flows.prospects import expected_usd, prospects, spent_per_window
from flows.run import Run, run_for

NOW = datetime(2026, 11, 30, tzinfo=UTC)
TOML = """
home = "home"
[[source]]
name = "herald"
url = "https://herald.example/feed"
[[source]]
name = "old-pages"
type = "sitemap"
url = "https://pages.example/sitemap.xml"
[[source]]
name = "asleep"
url = "https://asleep.example/feed"
paused = true
[llm]
model = "m"
[llm.prices]
m = [1.0, 2.0]
[annotate]
detector = "portable"
mask_model = "portable"
[score]
segmenters = []
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "nest.toml").write_text(TOML)
    return tmp_path / "nest.toml"


def _range(config: Path, **how: Any) -> int:
    asked = {name: how.pop(name) for name in ("only_missing", "dry_run", "as_json") if name in how}
    return backfill_range("2026-11-02", "2026-12-06", how=How(config, **how), now=NOW, **asked)


def test_the_plan_knows_what_is_open_and_what_can_be_had(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _range(config, dry_run=True, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert [line["window"] for line in told] == [
        "261102_261108",
        "261109_261115",
        "261116_261122",
        "261123_261129",
        "261130_261206",
    ]
    assert [line["state"] for line in told] == ["to do"] * 4 + ["open"]
    assert [source["source"] for source in told[0]["sources"]] == ["herald", "old-pages"]
    assert "nothing from herald" in told[0]["detail"]
    assert told[0]["usd"] is None
    assert _range(config, dry_run=True) == 0
    said = capsys.readouterr().err
    assert "of unknown cost" in said
    assert "old-pages (sitemap): nothing remembered; as far as the publisher's sitemaps" in said


def test_remembered_links_count_and_finished_windows_tell_the_cost(config: Path, tmp_path: Path) -> None:
    run = run_for(load_config(config, environ={}), "261109_261115", now=NOW)
    seen = datetime(2026, 11, 11, 9, tzinfo=UTC)
    link = Link(
        url="https://herald.example/a",
        source="herald",
        source_type="feed",
        first_seen=seen,
        witnesses=(DateWitness(kind="feed", value=seen, role="published", credible=True),),
    )
    path = _file(run.home.harvest, "herald", seen.date())
    path.parent.mkdir(parents=True)
    path.write_text(link.line() + "\n")
    found = {one.source: one for one in prospects(run)}
    assert found["herald"].remembered == 1
    assert not found["herald"].empty
    assert prospects(run_for(run.config, "261102_261108", now=NOW))[0].empty
    for number, usd in enumerate((0.2, 0.4)):
        place = run.home.root / "windows" / f"26010{number}_26010{number}" / "ask" / "k"
        place.mkdir(parents=True)
        (place / "run.json").write_text(json.dumps({"ledger": {"total": {"usd": usd}}}))
    (run.home.root / "windows" / "260105_260105" / "ask" / "k").mkdir(parents=True)
    (run.home.root / "windows" / "260105_260105" / "ask" / "k" / "run.json").write_text("{}")
    mean = spent_per_window(run.home.root)
    assert mean == pytest.approx(0.3)
    assert expected_usd(run, mean) == mean
    template = run.config.model_copy(update={"ask": run.config.ask.model_copy(update={"writer": "template"})})
    assert expected_usd(Run(template, run.home, run.window), mean) == 0.0


def test_a_failure_stops_nobody(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def run_flow(run: Run, **_: object) -> None:
        tried.append(run.window.label)
        if run.window.label == "261102_261108":
            raise TransientError("the endpoint sleeps")
        if run.window.label == "261109_261115":
            raise TerminalError("the disk is gone")

    from contextlib import nullcontext

    monkeypatch.setattr("flows.commands.pipeline.run_flow", run_flow)
    monkeypatch.setattr("flows.embedded.start.prefect", lambda home: nullcontext())
    assert _range(config, as_json=True) == 3
    told = {line["window"]: line for line in json.loads(capsys.readouterr().out)}
    assert tried == ["261102_261108", "261109_261115", "261116_261122", "261123_261129"]
    assert (told["261102_261108"]["state"], told["261102_261108"]["detail"]) == ("left", "the endpoint sleeps")
    assert told["261109_261115"]["state"] == "failed"
    assert told["261116_261122"]["state"] == "left"  # the flow made nothing


@pytest.mark.parametrize(
    ("code", "state", "detail"),
    [
        ("sys.exit(3)", "left", "no luck"),
        ("sys.exit(4)", "failed", "no luck"),
        ("sys.exit(0)", "left", ""),
        ("os.kill(os.getpid(), 9)", "failed", "ended by signal 9"),
    ],
)
def test_windows_at_a_time(config: Path, monkeypatch: pytest.MonkeyPatch, code: str, state: str, detail: str) -> None:
    alive: list[subprocess.Popen[bytes]] = []
    most = 0

    def start(line: Line, how: How, log: Path) -> "subprocess.Popen[bytes]":
        nonlocal most
        log.parent.mkdir(parents=True, exist_ok=True)
        script = f"import os, sys, time\nprint('nest: no luck', file=sys.stderr, flush=True)\ntime.sleep(0.2)\n{code}"
        with log.open("wb") as handle:
            alive.append(subprocess.Popen([sys.executable, "-c", script], stderr=handle))
        most = max(most, sum(process.poll() is None for process in alive))
        return alive[-1]

    monkeypatch.setattr(backfill_do, "_start", start)
    monkeypatch.setattr(backfill_do, "LOOK_EVERY_S", 0.02)
    lines = plan("2026-11-02", "2026-11-29", every="7d", config=config, now=NOW)
    backfill_do.do_parallel(lines, How(config, jobs=2))
    assert most == 2
    assert len(alive) == 4
    assert {line.state for line in lines} == {state}
    assert all(detail in line.detail for line in lines)


def test_an_interrupted_backfill_ends_its_processes(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(line: Line, how: How, log: Path) -> "subprocess.Popen[bytes]":
        if started:
            raise KeyboardInterrupt
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[0]

    monkeypatch.setattr(backfill_do, "_start", start)
    lines = plan("2026-11-02", "2026-11-15", every="7d", config=config, now=NOW)
    with pytest.raises(KeyboardInterrupt):
        backfill_do.do_parallel(lines, How(config, jobs=2))
    assert started[0].poll() is not None


def test_settings_reach_the_other_process(config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: dict[str, Any] = {}

    class Started:
        def __init__(self, words: list[str], **options: Any) -> None:
            told.update(options["env"], words=words)

    monkeypatch.setattr(subprocess, "Popen", Started)
    (line,) = plan("2026-11-02", "2026-11-08", every="7d", config=config, now=NOW)
    how = How(config, {"llm.max_usd": 1.5, "ask.batch": True}, jobs=2)
    backfill_do._start(line, how, tmp_path / "log.txt")
    assert told["words"][-2:] == ["--config", str(config)]
    read = load_config(config, environ={name: value for name, value in told.items() if name.startswith("NEST__")})
    assert (read.llm.max_usd, read.ask.batch) == (1.5, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"every": "weekly"}, "7d"),
        ({"every": "0d"}, "at least one day"),
        ({"first": "2026-13-01"}, "YYYY-MM-DD"),
        ({"first": "0001-01-01", "last": "9999-01-01", "every": "1d"}, "at most 1000"),
        ({"first": "2026-12-01", "last": "2026-11-01"}, "before it begins"),
    ],
)
def test_a_wrong_range_is_a_sentence(config: Path, words: dict[str, str], said: str) -> None:
    asked = {"first": "2026-11-02", "last": "2026-11-08", "every": "7d", **words}
    with pytest.raises(NestError, match=said):
        plan(asked["first"], asked["last"], every=asked["every"], config=config, now=NOW)


def test_deployments_need_a_server(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(ConfigError, match="PREFECT_API_URL"):
        _range(config, deployment="refresh/backfill")
    assert backfill.SETTLED == ("finished", "open", "sent")

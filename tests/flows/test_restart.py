"""Killed at any moment, a run goes on: the snapshot is the same to the byte, and no reply is paid twice."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.week import PILOT as NAME
from support.week import PLANTED_KEY, SMALL, WINDOW, Week, digests, holding, ready_database, rubbish


def _snapshot(week: Week) -> dict[str, str]:
    found = digests(week.home / "snapshots" / NAME)
    assert "snapshot.json" in found
    return found


@pytest.mark.slow
def test_killed_in_every_stage_through_the_flow(undisturbed: Week, tmp_path: Path) -> None:
    with Week(tmp_path, latency_s=0.3, overrides=SMALL) as week:
        ready_database(week.home, tmp_path / "cache")
        window = week.home / "windows" / WINDOW

        def there(pattern: str) -> Callable[[], bool]:
            return lambda: any(window.glob(pattern))

        command = ("refresh", "--window", WINDOW)
        moments = {
            "collect": there("collect/*/found/manifest.json"),
            "ask": lambda: week.llm.answered >= 1,
            "annotate": there("annotate/*/shards/00000/manifest.json"),
            "snapshot": there("annotate/*/manifest.json"),
            "score": lambda: (week.home / "predictions").is_dir(),
        }
        for stage, reached in moments.items():
            assert week.kill_when(command, reached, after_s=0.05), f"the run ended before it was killed in {stage}"
            assert week.servers_left() == []
        week.nest(*command)
        assert _snapshot(week) == _snapshot(undisturbed)
        assert any(kept for _, kept in week.kills)  # or the next line would say nothing
        assert week.paid_twice() == []
        assert rubbish(week.home) == []
        assert week.servers_left() == []

        again = week.nest(*command)
        assert "nothing to do" in again.stderr
        assert holding(tmp_path, PLANTED_KEY) == []


def test_a_finished_window_answers_before_prefect_is_imported(undisturbed: Week) -> None:
    with Week(undisturbed.folder, overrides=SMALL) as week:
        code = (
            "import sys\nfrom flows.cli import _run\n"
            f"assert _run(['refresh', '--window', '{WINDOW}', '--dry-run']) == 0\n"
            "assert 'prefect' not in sys.modules and 'torch' not in sys.modules\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=week.folder, env=week.env(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "snapshot   done" in done.stderr


def test_only_what_a_setting_touches_runs_again(undisturbed: Week, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.home, tmp_path / "home")
    with Week(tmp_path, overrides={**SMALL, "annotate.min_area_share": 0.0021}) as week:
        told = week.nest("refresh", "--window", WINDOW, "--dry-run").stderr
        assert "collect    done" in told
        assert "ask        done" in told
        assert "annotate   to do" in told
        before = week.llm.begun
        planned = week.nest("annotate", "--window", WINDOW, "--dry-run")
        assert [line.split()[0] for line in planned.stderr.splitlines()][:3] == ["collect", "ask", "annotate"]
        assert "snapshot" not in planned.stderr
        told = json.loads(week.nest("ask", "--window", WINDOW, "--dry-run", "--json").stdout)
        assert [(state["stage"], state["finished"]) for state in told] == [("collect", True), ("ask", True)]
        refused = week.nest("snapshot", "--window", WINDOW, code=4)
        assert "--revise" in refused.stderr
        week.nest("snapshot", "--window", WINDOW, "--revise")
        assert week.llm.begun == before
        kept = list((week.home / "snapshots" / ".superseded").glob(f"{NAME}.r1"))
        assert len(kept) == 1
        assert '"revision":"r2"' in (week.home / "snapshots" / NAME / "snapshot.json").read_text()


def test_another_version_of_a_stage_makes_it_and_what_follows_anew(
    undisturbed: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier version finished stays as it is, and is found again when that version comes back."""
    from engine.core.config import load_config
    from flows.plan import states
    from flows.run import run_for

    run = run_for(load_config(undisturbed.folder / "nest.toml", environ={}), WINDOW)

    def finished() -> dict[str, bool]:
        return {state.stage: state.finished for state in states(run)}

    before = finished()
    assert before["snapshot"]
    monkeypatch.setattr("engine.questions.ask.VERSION", "of-another-day")
    told = finished()
    assert told["collect"]
    assert not any(told[stage] for stage in ("ask", "annotate", "snapshot"))
    monkeypatch.undo()
    assert finished() == before

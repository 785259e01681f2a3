"""Killed at random moments over a backfill of three windows: the same bytes, nothing paid twice, nothing left behind.

NEST_CHAOS sets how many kills there are; without it 50 on the stages and 5 through Prefect.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest
from support import chaos
from support.week import PLANTED_KEY, Week, digests, ready_database, rubbish

from engine.core.store import held

FROM, TO, EVERY = "2026-11-16", "2026-11-21", "2d"
LABELS = ("261116_261117", "261118_261119", "261120_261121")
SETTINGS = {
    "collect.limit": 14,
    "score.segmenters": ["portable"],
    "ask.batch_articles": 2,
    "annotate.shard_images": 1,
    "score.shard_samples": 2,
}

pytestmark = [pytest.mark.slow, pytest.mark.chaos]


def _snapshots(week: Week) -> dict[str, dict[str, str]]:
    found = {label: digests(week.home / "snapshots" / f"NEST_{label}.pilot14") for label in LABELS}
    assert all("snapshot.json" in files for files in found.values())
    return found


def _clean(week: Week) -> None:
    assert week.paid_twice() == []
    assert rubbish(week.home) == []
    assert week.servers_left() == []
    assert [lock for lock in week.home.rglob("*.lock") if held(lock)] == []


@pytest.fixture(scope="module")
def undisturbed_windows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    with Week(tmp_path_factory.mktemp("undisturbed"), overrides=SETTINGS) as week:
        env = {"OPENAI_API_KEY": PLANTED_KEY}
        process = chaos.start(chaos.context(), week.folder / "nest.toml", LABELS, env, week.folder / "log.txt")
        process.join(600)
        assert process.exitcode == 0, (week.folder / "log.txt").read_text()
        return _snapshots(week)


@pytest.mark.timeout(1800)
def test_killed_on_the_stages(tmp_path: Path, undisturbed_windows: dict[str, dict[str, str]]) -> None:
    wanted = int(os.environ.get("NEST_CHAOS", "50"))
    moments = random.Random(20261116)
    context = chaos.context()
    kills = rounds = 0
    while kills < wanted:
        rounds += 1
        folder = tmp_path / f"round{rounds}"
        with Week(folder, latency_s=0.1, overrides=SETTINGS) as week:
            env = {"OPENAI_API_KEY": PLANTED_KEY}
            while True:
                process = chaos.start(context, folder / "nest.toml", LABELS, env, folder / "log.txt")
                process.join(moments.uniform(0.05, 2.0) if kills < wanted else 600)
                if not process.is_alive():
                    assert process.exitcode == 0, (folder / "log.txt").read_text()[-3000:]
                    break
                process.kill()
                process.join()
                week.killed()
                kills += 1
            assert _snapshots(week) == undisturbed_windows, f"after {kills} kills"
            _clean(week)
    assert kills == wanted


@pytest.mark.timeout(3600)
def test_killed_through_prefect(tmp_path: Path, undisturbed_windows: dict[str, dict[str, str]]) -> None:
    wanted = int(os.environ.get("NEST_CHAOS", "5"))
    moments = random.Random(20261121)
    kills = rounds = 0
    words = ("backfill", "--from", FROM, "--to", TO, "--every", EVERY)
    while kills < wanted:
        rounds += 1
        with Week(tmp_path / f"round{rounds}", latency_s=0.1, overrides=SETTINGS) as week:
            ready_database(week.home, tmp_path / "cache")
            while kills < wanted:
                run = week.start(*words)
                try:
                    run.wait(timeout=moments.uniform(4.0, 16.0))
                except subprocess.TimeoutExpired:
                    kills += week.kill(run)
                else:
                    break
            done = week.nest(*words)
            assert done.stderr.count("finished") == len(LABELS)
            assert _snapshots(week) == undisturbed_windows, f"after {kills} kills"
            _clean(week)
    assert kills == wanted

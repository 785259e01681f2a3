"""Stages fanned out over a task runner: the same bytes as in one process, whatever happens to a worker."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.week import PILOT, SMALL, WINDOW, Week, digests, ready_database, rubbish

from engine.core.errors import ConfigError, NestError, TransientError
from engine.core.store import held as is_held
from flows.fanout import fan_out, make_runner
from flows.run import Run, open_run

DASK = {
    **SMALL,
    "annotate.shard_images": 1,
    "score.shard_samples": 2,
    "flows.task_runner": "prefect_dask:DaskTaskRunner",
}


def _children(of: Path) -> list[int]:
    """Processes whose environment names this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(of).encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _predictions(home: Path) -> dict[str, str]:
    return {
        name: digest
        for name, digest in digests(home / "predictions").items()
        if name.endswith(("part-00000.jsonl", "rejected.jsonl")) and "/shards/" not in name
    }


@pytest.mark.slow
def test_two_dask_workers_make_the_same_bytes_and_one_may_die(undisturbed: Week, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.home, tmp_path / "plain" / "home")
    with Week(tmp_path / "plain", overrides=SMALL) as plain:
        plain.nest("score", WINDOW)
    (tmp_path / "dask").mkdir()
    home = tmp_path / "dask" / "home"
    for part in ("blobs", "cache"):
        shutil.copytree(undisturbed.home / part, home / part)
    for stage in ("collect", "ask"):
        shutil.copytree(undisturbed.home / "windows" / WINDOW / stage, home / "windows" / WINDOW / stage)
    with Week(tmp_path / "dask", overrides=DASK) as week:
        ready_database(home, tmp_path / "cache")
        marked = {"NEST_TEST_FOLDER": str(tmp_path / "dask")}
        run = week.start("refresh", "--window", WINDOW, env=marked)
        shards = home / "windows" / WINDOW / "annotate"
        deadline = time.monotonic() + 120
        while not (held := _holding_a_shard(shards)) and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        assert held not in (0, run.pid), (tmp_path / "dask" / "log.txt").read_text()
        os.kill(held, signal.SIGKILL)  # a worker in the middle of a shard
        assert run.wait(timeout=240) == 0, (tmp_path / "dask" / "log.txt").read_text()
        assert digests(home / "snapshots" / PILOT) == digests(undisturbed.home / "snapshots" / PILOT)
        assert _predictions(home) == _predictions(tmp_path / "plain" / "home") != {}
        assert rubbish(home) == []
        for _ in range(100):
            if not _children(tmp_path / "dask"):
                break
            time.sleep(0.1)
        assert _children(tmp_path / "dask") == []


def _holding_a_shard(stage: Path) -> int:
    """The process that holds the lock of a shard, 0 if nobody does."""
    for lock in stage.glob("*/.shard-*.lock"):
        if is_held(lock):
            try:
                return int(json.loads(lock.read_text())["pid"])
            except (ValueError, KeyError):
                continue
    return 0


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return open_run("2020-W10", overrides={"home": str(tmp_path), "flows.task_runner": "support.runners:AtOnce"})


def test_all_tasks_get_all_shards_each_beginning_elsewhere(run: Run) -> None:
    from support.runners import AtOnce

    AtOnce.seen, orders[:] = [], []
    assert fan_out(run, "annotate", _count, shards=[3, 5, 8, 9]) == 8
    assert orders == [[3, 5, 8, 9], [8, 9, 3, 5]]
    assert AtOnce.seen == ["annotate 200302_200308 part 0", "annotate 200302_200308 part 1"]
    assert fan_out(run, "annotate", _count, shards=[]) == 0


def test_a_failure_of_the_work_is_itself_and_a_lost_worker_is_transient(run: Run) -> None:
    with pytest.raises(NestError, match="no key"):
        fan_out(run, "annotate", _no_key, shards=[1])
    with pytest.raises(TransientError, match="were lost"):
        fan_out(run, "annotate", _lost, shards=[1])
    with pytest.raises(ZeroDivisionError):
        fan_out(run, "annotate", _fault, shards=[1])


@pytest.mark.parametrize(
    ("told", "options", "said"),
    [
        ("dask", {}, "module:Class"),
        ("prefect_ray_not_here:RayTaskRunner", {}, "install the package"),
        ("support.runners:Nothing", {}, "cannot be loaded"),
        ("support.runners:AtOnce", {"adress": "x"}, "do not suit"),
    ],
)
def test_a_wrong_task_runner_is_a_sentence(tmp_path: Path, told: str, options: dict[str, str], said: str) -> None:
    settings = {"home": str(tmp_path), "flows.task_runner": told, "flows.task_runner_options": options}
    with pytest.raises(ConfigError, match=said):
        make_runner(open_run("2020-W10", overrides=settings))


orders: list[list[int]] = []


def _count(run: Run, indexes: list[int]) -> int:
    orders.append(indexes)
    return len(indexes)


def _no_key(run: Run, indexes: list[int]) -> int:
    raise ConfigError("no key")


def _lost(run: Run, indexes: list[int]) -> int:
    raise type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})("gone")


def _fault(run: Run, indexes: list[int]) -> int:
    return 1 // 0

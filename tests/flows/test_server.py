"""The deployments on a real Prefect server with real workers, one of them killed in the middle."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import chaos
from support.postgres import Postgres, binaries
from support.server import PrefectServer, kill_tree
from support.week import PLANTED_KEY, Week, digests, holding, rubbish

# Four windows that lie in the sample week, two days each (the last has one).
FROM, TO, EVERY = "2026-11-16", "2026-11-22", "2d"
LABELS = ("261116_261117", "261118_261119", "261120_261121", "261122_261122")
SETTINGS = {
    "collect.limit": 14,
    "ask.writer": "template",
    "score.segmenters": [],
    "annotate.shard_images": 1,
    "flows.annotate_deployment": "annotate/gpu",
    "flows.lost_after_s": 8,
}

# a quarter of an hour each on two busy cores: part of `make chaos`
pytestmark = [
    pytest.mark.slow,
    pytest.mark.system,
    pytest.mark.chaos,
    pytest.mark.skipif(not os.environ.get("NEST_CHAOS"), reason="part of make chaos"),
]


def _wait(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The four windows made by the stages alone, without Prefect."""
    with Week(tmp_path_factory.mktemp("plain"), overrides=SETTINGS) as week:
        process = chaos.start(chaos.context(), week.folder / "nest.toml", LABELS, {}, week.folder / "log.txt")
        process.join(600)
        assert process.exitcode == 0, (week.folder / "log.txt").read_text()
        return {label: _snapshot(week, label) for label in LABELS}


def _snapshot(week: Week, label: str) -> dict[str, str]:
    """Digests of the window's snapshot; a limit makes it a pilot, which is the same code."""
    found = digests(week.home / "snapshots" / f"NEST_{label}.pilot14")
    assert "snapshot.json" in found
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[Postgres | None]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield None
        elif binaries() is None:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        else:
            yield stack.enter_context(Postgres())


@pytest.mark.timeout(2400)
def test_backfill_over_two_pools_with_a_killed_worker(
    tmp_path: Path, plain: dict[str, dict[str, str]], database: Postgres | None
) -> None:
    with Week(tmp_path / "week", overrides=SETTINGS) as week:
        keys = {"NEST_CONFIG": str(week.folder / "nest.toml"), "OPENAI_API_KEY": PLANTED_KEY}
        url = database.url if database else ""
        with PrefectServer(tmp_path / "server", env=keys, database=url) as server:
            server.deploy()
            _schedule(server, LABELS[0])
            server.worker("cpu", limit=3)
            gpu = server.worker("gpu")
            words = ["--from", FROM, "--to", TO, "--every", EVERY, "--deployment", "refresh/backfill", "--wait"]
            backfill = week.start("backfill", *words, env=server.env)
            shards = week.home / "windows"
            _wait(lambda: any(shards.glob("*/annotate/*/shards/*/manifest.json")), timeout_s=600, what="a first shard")
            kill_tree(gpu.pid)
            server.worker("gpu", number=1)
            log = week.folder / "log.txt"
            assert backfill.wait(timeout=1200) == 0, log.read_text()
            assert log.read_text().count("finished") >= 4
            _wait(
                lambda: all(r["state"] == "COMPLETED" for r in server.runs() if r["name"].startswith("refresh-26")),
                timeout_s=240,
                what="all refresh runs to complete",
            )
            rows = server.runs()
            assert {r["pool"] for r in rows if r["name"].startswith("annotate")} == {"gpu"}
            assert {r["pool"] for r in rows if r["name"].startswith("refresh")} == {"cpu"}
            backfilled = [r for r in rows if r["deployment"] == "backfill"]
            assert sorted(r["queue"] for r in backfilled) == ["backfill"] * 4
            fired = [r for r in rows if r["deployment"] == "weekly" and r["state"] == "COMPLETED"]
            assert [r["auto"] for r in fired] == ["True"]
            assert any(r["state"] == "CRASHED" for r in rows if r["name"].startswith("annotate"))
            assert server.slots_held() == 0
            again = week.nest("backfill", *words, env=server.env)
            assert again.stderr.count("finished") == 4
            assert len(server.runs()) == len(rows)
            if database:
                assert PLANTED_KEY not in database.text()
        for label in LABELS:
            assert _snapshot(week, label) == plain[label], label
        assert rubbish(week.home) == []
    # neither the server's database and logs, the workers' logs nor the store hold the key
    assert holding(tmp_path, PLANTED_KEY) == []


def _schedule(server: PrefectServer, label: str) -> None:
    """One more schedule of the weekly deployment, whose first tick is in a few seconds."""
    server.python(
        """
from datetime import UTC, datetime, timedelta
from prefect.client.schemas.schedules import IntervalSchedule
deployment = client.read_deployment_by_name("refresh/weekly")
tick = datetime.now(UTC) + timedelta(seconds=4)
schedule = IntervalSchedule(interval=timedelta(days=7), anchor_date=tick)
client.create_deployment_schedules(deployment.id, [(schedule, True)], parameters={"window": sys.argv[1]})
""",
        label,
    )

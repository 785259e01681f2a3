"""A backfill of four windows over two work pools of a real Prefect server, a worker of which is killed, against the
same windows made by the stages alone. The files that call this differ in the server's database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from support import chaos
from support.postgres import Postgres
from support.server import PrefectServer, kill_tree, wait_for
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


def backfill_with_a_killed_worker(folder: Path, database: Postgres | None) -> None:
    """Deploy, let a schedule fire, send the backfill, kill the gpu worker in the middle, start another: every window
    ends finished with the bytes of the plain run, on the pools and queues that it should have been on."""
    with Week(folder / "plain", overrides=SETTINGS) as plain, Week(folder / "week", overrides=SETTINGS) as week:
        # the plain run goes on while the server and its workers start
        alone = chaos.start(chaos.context(), plain.folder / "nest.toml", LABELS, {}, plain.folder / "log.txt")
        keys = {"NEST_CONFIG": str(week.folder / "nest.toml"), "OPENAI_API_KEY": PLANTED_KEY}
        with PrefectServer(folder / "server", env=keys, database=database.url if database else "") as server:
            _go_through(server, week)
            if database:
                assert PLANTED_KEY not in database.text()
        alone.join(600)
        assert alone.exitcode == 0, (plain.folder / "log.txt").read_text()
        for label in LABELS:
            assert _snapshot(week, label) == _snapshot(plain, label), label
        assert rubbish(week.home) == []
    # neither the server's database and logs, the workers' logs nor the store hold the key
    assert holding(folder, PLANTED_KEY) == []


def _go_through(server: PrefectServer, week: Week) -> None:
    server.deploy()
    assert server.pause_schedules() == 3
    server.worker("cpu", limit=3)
    gpu = server.worker("gpu")
    _schedule(server, LABELS[-1])
    words = ["--from", FROM, "--to", TO, "--every", EVERY, "--deployment", "refresh/backfill", "--wait"]
    backfill = week.start("backfill", *words, env=server.env)
    # a window whose shards nobody but its own refresh has sent out: what is lost there is missed
    windows = [week.home / "windows" / label for label in LABELS[:-1]]
    wait_for(lambda: any(_shards(window) == 1 for window in windows), timeout_s=600, what="a first shard")
    kill_tree(gpu.pid)
    server.worker("gpu", number=1)
    log = week.folder / "log.txt"
    assert backfill.wait(timeout=1200) == 0, log.read_text()
    assert log.read_text().count("finished") >= 4

    def ended() -> bool:
        return all(one["state"] == "COMPLETED" for one in server.runs() if one["name"].startswith("refresh-26"))

    wait_for(ended, timeout_s=240, what="all refresh runs to complete")
    rows = server.runs()
    assert {r["pool"] for r in rows if r["name"].startswith("annotate")} == {"gpu"}
    assert {r["pool"] for r in rows if r["name"].startswith("refresh")} == {"cpu"}
    assert [r["queue"] for r in rows if r["deployment"] == "backfill"] == ["backfill"] * 4
    assert [r["auto"] for r in rows if r["deployment"] == "weekly" and r["state"] == "COMPLETED"] == [True]
    assert any(r["state"] == "CRASHED" for r in rows if r["name"].startswith("annotate"))
    assert server.slots_held() == 0
    again = week.nest("backfill", *words, env=server.env)
    assert again.stderr.count("finished") == 4
    assert len(server.runs()) == len(rows)


def _shards(window: Path) -> int:
    """Shards of masks that are finished; all of these windows have more than two."""
    return len(list(window.glob("annotate/*/shards/*/manifest.json")))


def _schedule(server: PrefectServer, label: str) -> None:
    """The weekly deployment's first tick is in a moment, by a schedule of the test's own."""
    tick = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    told = {"schedule": {"interval": 7 * 86_400, "anchor_date": tick}, "active": True, "parameters": {"window": label}}
    server.api(f"deployments/{server.deployment('refresh/weekly')['id']}/schedules", [told])


def _snapshot(week: Week, label: str) -> dict[str, str]:
    """Digests of the window's snapshot; a limit makes it a pilot, which is the same code."""
    found = digests(week.home / "snapshots" / f"NEST_{label}.pilot14")
    assert "snapshot.json" in found
    return found

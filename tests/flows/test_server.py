"""The deployments on a real Prefect server with real workers, one of them killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.server import PrefectServer
from support.week import Week, digests

# Four windows that lie in the sample week, two days each (the last has one).
FROM, TO, EVERY = "2026-11-16", "2026-11-22", "2d"
LABELS = ("261116_261117", "261118_261119", "261120_261121", "261122_261122")
SETTINGS = {
    "ask.writer": "template",
    "score.segmenters": [],
    "annotate.shard_images": 2,
    "flows.annotate_deployment": "annotate/gpu",
}


def _runs(server: PrefectServer) -> list[dict[str, str]]:
    code = (
        "import json\nfrom prefect.client.orchestration import get_client\n"
        "with get_client(sync_client=True) as c:\n"
        "    rows = [dict(name=r.name, state=r.state.type.value, queue=r.work_queue_name or '',"
        " pool=r.work_pool_name or '') for r in c.read_flow_runs()]\n"
        "print(json.dumps(rows))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=server.env, capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def _wait(condition: object, *, timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(1)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[dict[str, dict[str, str]]]:
    """The four windows made by the stages alone, without Prefect."""
    with Week(tmp_path / "plain", overrides={**SETTINGS, "flows.annotate_deployment": ""}) as week:
        for label in LABELS:
            week.nest("snapshot", "--window", label)
        yield {label: digests(week.home / "snapshots" / f"NEST_{label}") for label in LABELS}


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.skipif("NEST_CHAOS" not in os.environ, reason="takes ten minutes: make chaos runs it")
def test_backfill_over_two_pools_with_a_killed_worker(tmp_path: Path, plain: dict[str, dict[str, str]]) -> None:
    with Week(tmp_path / "week", overrides=SETTINGS) as week:
        keys = {"NEST_CONFIG": str(week.folder / "nest.toml"), "OPENAI_API_KEY": week.llm.key}
        with PrefectServer(tmp_path / "server", env=keys) as server:
            server.deploy()
            server.worker("cpu")
            gpu = server.worker("gpu")
            # one window as a scheduled run of the weekly deployment, the rest by backfill on the low-priority queue
            server.prefect(
                "deployment", "run", "refresh/weekly", "--start-in", "2 seconds", "--param", f'window="{LABELS[0]}"'
            )
            sent = week.nest(
                "backfill",
                "--from",
                FROM,
                "--to",
                TO,
                "--every",
                EVERY,
                "--deployment",
                "refresh/backfill",
                env=server.env,
            )
            assert sent.stderr.count("sent") == 4
            shards = week.home / "windows"
            _wait(lambda: any(shards.glob("*/annotate/*/shards/*/manifest.json")), timeout_s=400, what="a first shard")
            os.killpg(gpu.pid, signal.SIGKILL)
            server.worker("gpu", number=1)
            done = [week.home / "snapshots" / f"NEST_{label}" / "snapshot.json" for label in LABELS]
            _wait(lambda: all(path.is_file() for path in done), timeout_s=900, what="four snapshots")
            _wait(
                lambda: all(r["state"] == "COMPLETED" for r in _runs(server) if r["name"].startswith("refresh")),
                timeout_s=300,
                what="all refresh runs to complete",
            )
            rows = _runs(server)
        assert {r["pool"] for r in rows if r["name"].startswith("annotate")} == {"gpu"}
        assert sum(r["queue"] == "backfill" for r in rows) == 4
        for label in LABELS:
            assert digests(week.home / "snapshots" / f"NEST_{label}") == plain[label], label

"""A real Prefect server and real workers as processes, for tests of the deployments."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]


class PrefectServer:
    """`prefect server start` on a free loopback port with its own home; SQLite unless `database` is given."""

    def __init__(self, folder: Path, *, database: str = "", env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "OPENAI", "HF_", "PREFECT"))}
        self.env = {
            **clean,
            **(env or {}),
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_UI_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_CLIENT_MAX_RETRIES": "12",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
            "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "5",
            "PREFECT_SERVER_SERVICES_TRIGGERS_PROACTIVE_INTERVAL_SECONDS": "1",
            "DO_NOT_TRACK": "1",
        }
        if database:
            self.env["PREFECT_API_DATABASE_CONNECTION_URL"] = database
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._start("server", "server", "start", "--host", "127.0.0.1", "--port", str(self.port), "--no-ui")
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.env['PREFECT_API_URL']}/health", timeout=5).close()
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        raise TimeoutError((self.folder / "server.log").read_text()[-2000:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self.processes):
            kill_tree(process.pid)
            process.wait(timeout=30)

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect", *words],
                cwd=self.folder,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def prefect(self, *words: str, cwd: Path | None = None) -> str:
        """Run a prefect command to its end and return what it printed."""
        return self._run(["-m", "prefect", *words], cwd=cwd)

    def python(self, code: str, *words: str) -> str:
        """Run code against this server in a process of its own, with `client` at hand, and return what it printed."""
        head = "import json, sys\nfrom prefect.client.orchestration import get_client\n"
        body = "".join(f"    {line}\n" for line in code.strip().splitlines())
        return self._run(["-c", f"{head}with get_client(sync_client=True) as client:\n{body}", *words])

    def _run(self, words: list[str], cwd: Path | None = None) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=cwd or self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def worker(self, pool: str, *, limit: int = 1, number: int = 0, queue: str = "") -> subprocess.Popen[bytes]:
        """A worker of a pool; with `queue` it looks at that queue alone."""
        name = f"{pool}-{number}"
        words = ["worker", "start", "--pool", pool, "--limit", str(limit), "--name", name]
        return self._start(f"worker-{name}", *words, *(["--work-queue", queue] if queue else []))

    def deploy(self) -> None:
        """The pools, the low-priority queue and the project's deployments, as docs/operation.md says."""
        for pool in ("cpu", "gpu"):
            self.prefect("work-pool", "create", pool, "--type", "process")
        self.prefect("work-queue", "create", "backfill", "--pool", "cpu", "--priority", "10")
        self.prefect("--no-prompt", "deploy", "--all", cwd=ROOT)

    def runs(self) -> list[dict[str, str]]:
        """All flow runs: name, state, work queue, pool and the deployment's name."""
        found: list[dict[str, str]] = json.loads(
            self.python(
                """
names = {d.id: d.name for d in client.read_deployments()}
rows = [
    {"name": r.name, "state": r.state.type.value, "queue": r.work_queue_name or "", "pool": r.work_pool_name or "",
     "deployment": names.get(r.deployment_id, ""), "auto": str(r.auto_scheduled)}
    for r in client.read_flow_runs()
]
print(json.dumps(rows))
"""
            )
        )
        return found

    def slots_held(self) -> int:
        """Slots of all concurrency limits that somebody occupies."""
        code = "print(sum(x.active_slots for x in client.read_global_concurrency_limits(limit=200, offset=0)))"
        return int(self.python(code))


def kill_tree(pid: int) -> None:
    """kill -9 a process and all its descendants, as a machine that loses its power does."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    order = [pid]
    for one in order:
        order += children.get(one, [])
    for one in order:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)

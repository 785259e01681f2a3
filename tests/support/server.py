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
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.week import ready_database

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
            "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "2",
            "PREFECT_SERVER_SERVICES_LATE_RUNS_AFTER_SECONDS": "2",
            "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "1",
            "PREFECT_SERVER_EVENTS_PROACTIVE_GRANULARITY": "PT1S",
            "DO_NOT_TRACK": "1",
        }
        self.database = database
        if database:
            self.env["PREFECT_API_DATABASE_CONNECTION_URL"] = database
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.database:
            ready_database(self.folder, self.folder.parent / "cache")
        server = self._start("server", "server", "start", "--host", "127.0.0.1", "--port", str(self.port), "--no-ui")
        deadline = time.monotonic() + 240
        while server.poll() is None and time.monotonic() < deadline:
            try:
                self.api("health")
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        self.__exit__(None, None, None)
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

    def api(self, path: str, body: Any = None, *, method: str = "") -> Any:
        """What the server's API answers, decoded: GET without a body, else POST, or the method that is named. One that
        is busy (SQLite knows one writer at a time) is asked again for a while, as Prefect's own client does."""
        request = urllib.request.Request(
            f"{self.env['PREFECT_API_URL']}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method or ("GET" if body is None else "POST"),
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    told = answer.read()
                return json.loads(told) if told else None
            except urllib.error.HTTPError as error:
                if error.code != 503 or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def deploy(self) -> None:
        """The pools, the low-priority queue and the project's deployments, as the compose file makes them."""
        for pool in ("cpu", "gpu"):
            self.prefect("work-pool", "create", pool, "--type", "process")
        self.prefect("work-queue", "create", "backfill", "--pool", "cpu", "--priority", "10")
        self.prefect("--no-prompt", "deploy", "--all", cwd=ROOT)

    def pause_schedules(self) -> int:
        """The file's schedules rest, so that nothing depends on the hour; returns how many were active."""
        count = 0
        for one in self.api("deployments/filter", {}):
            for schedule in one["schedules"]:
                count += bool(schedule["active"])
                self.api(f"deployments/{one['id']}/schedules/{schedule['id']}", {"active": False}, method="PATCH")
        return count

    def deployment(self, name: str) -> dict[str, Any]:
        """A deployment by its full name, flow/deployment."""
        found: dict[str, Any] = self.api(f"deployments/name/{name}")
        return found

    def runs(self) -> list[dict[str, Any]]:
        """All flow runs: id, name, state, message, work queue, pool, the deployment's name and whether a schedule made
        it."""
        names = {one["id"]: one["name"] for one in self.api("deployments/filter", {})}
        return [
            {
                "id": one["id"],
                "name": one["name"],
                "state": one["state_type"],
                "message": one["state"]["message"],
                "queue": one["work_queue_name"],
                "pool": one["work_pool_name"],
                "deployment": names.get(one["deployment_id"], ""),
                "auto": one["auto_scheduled"],
            }
            for one in self.api("flow_runs/filter", {"limit": 200})
        ]

    def run(self, name: str) -> dict[str, Any]:
        """A flow run by its id, as the API tells it."""
        found: dict[str, Any] = self.api(f"flow_runs/{name}")
        return found

    def slots_held(self) -> int:
        """Slots of all concurrency limits that somebody occupies."""
        return sum(int(one["active_slots"]) for one in self.api("v2/concurrency_limits/filter", {"limit": 200}))


def wait_for(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Return as soon as the condition holds; fail the test where it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)


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

"""A real Prefect server and real workers as processes, for tests of the deployments."""

from __future__ import annotations

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
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
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
        done = subprocess.run(
            [sys.executable, "-m", "prefect", *words],
            cwd=cwd or self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"prefect {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def worker(self, pool: str, *, limit: int = 1, number: int = 0) -> subprocess.Popen[bytes]:
        return self._start(
            f"worker-{pool}-{number}",
            "worker",
            "start",
            "--pool",
            pool,
            "--limit",
            str(limit),
            "--name",
            f"{pool}-{number}",
        )

    def deploy(self) -> None:
        """The pools, the low-priority queue and the project's deployments, as docs/operation.md says."""
        for pool in ("cpu", "gpu"):
            self.prefect("work-pool", "create", pool, "--type", "process")
        self.prefect("work-queue", "create", "backfill", "--pool", "cpu", "--priority", "10")
        self.prefect("--no-prompt", "deploy", "--all", cwd=ROOT)

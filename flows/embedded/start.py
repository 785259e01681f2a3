"""Prefect without set-up: a private server for the length of one command.

`PREFECT_API_URL` in the environment is all it takes to use a real server instead. Prefect is imported nowhere
before this has set its environment, so that its own ephemeral mode (which outlives a killed run) is never used.
"""

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core.errors import ConfigError, TerminalError, TransientError
from engine.core.store import locked

START_TIMEOUT_S = 180.0
REACH_TRIES = 4
#: Background services of the server that a run of one command has no use for.
UNUSED_SERVICES = (
    "SCHEDULER",
    "LATE_RUNS",
    "CANCELLATION_CLEANUP",
    "PAUSE_EXPIRATIONS",
    "FOREMAN",
    "REPOSSESSOR",
    "TRIGGERS",
)


@contextmanager
def prefect(home: Path) -> Iterator[None]:
    """Have a Prefect API for the body: the user's if `PREFECT_API_URL` is set, else an embedded one."""
    if url := os.environ.get("PREFECT_API_URL"):
        require_server(url)
        yield
        return
    folder = home / "prefect"
    with locked(folder / ".lock", wait_s=START_TIMEOUT_S):
        _end_stale(folder)
        process, port = _start(folder)
    quiet = {
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_HOME": str(folder),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
    }
    before = {name: os.environ.get(name) for name in quiet}
    os.environ.update(quiet)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _stop(process)
        (folder / f"server-{process.pid}.json").unlink(missing_ok=True)


def require_server(url: str) -> None:
    """Raise `TransientError` where the user's server is away: prefect itself would try for minutes."""
    for _ in range(REACH_TRIES):
        try:
            urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=5).close()
            return
        except ValueError as error:
            raise ConfigError(f"PREFECT_API_URL '{url}' is not an address: write http://host:4200/api") from error
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            time.sleep(0.5)
    raise TransientError(
        f"the Prefect server at {url} does not answer ({reason}): start it, or unset PREFECT_API_URL to run embedded"
    )


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    env = dict(os.environ)
    env.update(
        PREFECT_HOME=str(folder),
        PREFECT_API_DATABASE_CONNECTION_URL=f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_SERVER_UI_ENABLED="false",
        PREFECT_LOGGING_LEVEL="CRITICAL",
        PREFECT_SERVER_LOGGING_LEVEL="CRITICAL",
        DO_NOT_TRACK="1",
    )
    for name in UNUSED_SERVICES:
        env[f"PREFECT_SERVER_SERVICES_{name}_ENABLED"] = "false"
    log = (folder / "server.log").open("wb")
    with log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.embedded.server", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )
    told = {"pid": process.pid, "parent": os.getpid(), "host": socket.gethostname(), "port": port}
    (folder / f"server-{process.pid}.json").write_text(json.dumps(told), encoding="utf-8")
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=2).close()
            return process, port
        time.sleep(0.1)
    _stop(process)
    raise TerminalError(f"the embedded Prefect server did not start: see {folder / 'server.log'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_stale(folder: Path) -> None:
    """End servers of ours whose parent is gone; the pid must still run our module, pids are reused."""
    for path in folder.glob("server-*.json"):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            path.unlink(missing_ok=True)
            continue
        if told.get("host") != socket.gethostname() or _alive(int(told["parent"])):
            continue
        command = Path(f"/proc/{told['pid']}/cmdline")
        with contextlib.suppress(OSError):
            if b"flows.embedded.server" in command.read_bytes():
                os.kill(int(told["pid"]), signal.SIGKILL)
        path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""Many articles: requests under way stay at the limit, and a kill and a second run pay for nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.ask_scale import written
from support.llm_server import LlmServer

TESTS = Path(__file__).parents[2]
COUNT, IN_FLIGHT, LATENCY_S = 320, 8, 0.05


def start(server: LlmServer, home: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    command = [sys.executable, "-m", "support.ask_scale", server.url, str(home), str(COUNT), str(IN_FLIGHT)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


def cached(home: Path) -> int:
    return sum(1 for _ in (home / "llm").glob("??/*.json"))


def wait_for(server: LlmServer, answered: int) -> None:
    deadline = time.monotonic() + 120
    while server.answered < answered and time.monotonic() < deadline:
        time.sleep(0.005)
    assert server.answered >= answered


def settle(server: LlmServer) -> None:
    """Until the server has dealt with what the dead process left in its sockets."""
    quiet = time.monotonic()
    begun = -1
    while time.monotonic() - quiet < 0.5:
        if server.begun != begun or server.in_flight:
            begun, quiet = server.begun, time.monotonic()
        time.sleep(0.02)


def shards(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("part-*.jsonl"))}


@pytest.mark.slow
def test_killed_and_run_again(tmp_path: Path) -> None:
    """Three kills: what lies in the cache is not asked for again, and the result is that of an undisturbed run."""
    with LlmServer(reply=written, latency_s=LATENCY_S, keep_bodies=False) as server:
        for answered in (40, 130, 250):
            process = start(server, tmp_path / "killed")
            wait_for(server, answered)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            settle(server)
            before, begun = cached(tmp_path / "killed"), server.begun
            # replies that the dead process had read but not yet stored: at most those under way
            assert len(server.seen) - before <= IN_FLIGHT
        told = finish(start(server, tmp_path / "killed"))
        assert server.begun - begun == COUNT - before == told["requests"]
        assert server.most_in_flight <= 2 * IN_FLIGHT
        assert len(server.seen) == COUNT
    with LlmServer(reply=written, keep_bodies=False) as server:
        clean = finish(start(server, tmp_path / "clean"))
        assert (clean["kept"], clean["lost"], server.answered) == (COUNT, 0, COUNT)
        assert server.most_in_flight <= IN_FLIGHT
        assert (clean["tokens_in"], clean["tokens_out"]) == (server.tokens_in, server.tokens_out)
    assert shards(tmp_path / "killed") == shards(tmp_path / "clean")

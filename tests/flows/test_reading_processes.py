"""A week collected by processes of their own, killed in the middle: nothing stays behind, the bytes are the same."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from support.week import SMALL, WINDOW, Week


def of_session(leader: int) -> set[int]:
    """Living processes of the session that a process began."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = place.read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.add(int(place.parent.name))
    return found


def data_files(week: Week) -> dict[str, dict[str, str]]:
    manifests = week.home.glob("windows/*/collect/*/manifest.json")
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8"))["files"] for path in manifests}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_collect_leaves_no_reader_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    with Week(tmp_path / "one", writer="template", overrides=SMALL) as week:
        week.nest("collect", "--window", WINDOW)
        alone = data_files(week)
    assert len(alone) == 1
    several = {**SMALL, "collect.processes": 2}
    with Week(tmp_path / "two", writer="template", overrides=several) as week:
        run = week.start("collect", "--window", WINDOW)
        until = time.monotonic() + 120
        # itself, what keeps track of shared things, and two readers
        while len(of_session(run.pid)) < 4 and run.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert len(of_session(run.pid)) == 4
        os.kill(run.pid, signal.SIGKILL)
        run.wait(timeout=60)
        while of_session(run.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert of_session(run.pid) == set()
        assert data_files(week) == {}
        week.nest("collect", "--window", WINDOW)
        assert data_files(week) == alone

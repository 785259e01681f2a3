"""How the windows of a backfill are done: here, some at a time in processes of their own, or by a Prefect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from engine.core.errors import ConfigError, NestError, TerminalError, TransientError
from flows import console
from flows.backfill import How, Line, settle
from flows.stages import collect

LOOK_EVERY_S = 0.5
END_WITHIN_S = 30.0


def do_here(lines: Sequence[Line], how: How) -> None:
    """One window after the other in this process."""
    from flows.commands.pipeline import run_flow
    from flows.embedded.start import prefect

    if not lines:
        return
    # one server for all: prefect keeps the first address that it was imported with
    with prefect(lines[0].run.home.root):
        for line in lines:
            console.say(f"backfill: window {line.label}")
            try:
                run_flow(line.run, config=how.config, overrides=how.overrides or {})
            except NestError as error:
                settle(line, error)
                console.say(f"  {line.detail}")
            else:
                settle(line)


def do_parallel(lines: Sequence[Line], how: How) -> None:
    """Up to `jobs` windows at a time, each in a process of its own with its own log in the window's folder. The
    politeness towards publishers is each process's own, so `jobs` multiplies the requests to one host."""
    waiting = list(lines)
    running: dict[subprocess.Popen[bytes], tuple[Line, Path]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < how.jobs:
                line = waiting.pop(0)
                log = line.run.home.window(line.run.window) / "backfill.log"
                running[_start(line, how, log)] = line, log
            for process in [process for process in running if process.poll() is not None]:
                line, log = running.pop(process)
                _ended(line, process.returncode, log)
                console.say(f"backfill: window {line.label} {line.state}. {line.detail}".rstrip())
            time.sleep(LOOK_EVERY_S if running else 0)
    finally:
        for process in running:  # interrupted: each child ends as a single run does, resumable
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=END_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _start(line: Line, how: How, log: Path) -> subprocess.Popen[bytes]:
    console.say(f"backfill: window {line.label} begins, log {log}")
    env = dict(os.environ)
    for dotted, value in (how.overrides or {}).items():
        env["NEST__" + dotted.upper().replace(".", "__")] = json.dumps(value)
    words = [sys.executable, "-m", "flows.cli", "refresh", "--window", line.label]
    if how.config:
        words += ["--config", str(how.config.absolute())]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as handle:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, env=env)


def _ended(line: Line, code: int, log: Path) -> None:
    if code == 0:
        settle(line)
        return
    told = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = next((text.removeprefix("nest: ") for text in reversed(told) if text.startswith("nest: ")), f"see {log}")
    if code == 3:
        settle(line, TransientError(said))
    else:
        settle(line, TerminalError(said if code > 0 else f"ended by signal {-code}, see {log}"))


def send(lines: Sequence[Line], how: How) -> None:
    """One flow run per window. The server looks only at the key: a failed run keeps it, hence the attempt's number."""
    if not lines:
        return
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError("--deployment needs a Prefect server: set PREFECT_API_URL, or leave it out to run here")
    from flows.embedded.inline import asking_the_server, insist
    from flows.embedded.start import require_server

    require_server(os.environ["PREFECT_API_URL"])
    from prefect.deployments import run_deployment

    sent = {}
    for line in lines:
        with asking_the_server():
            flow_run = insist(
                partial(
                    run_deployment,
                    how.deployment,
                    parameters={
                        "window": line.label,
                        "config": str(how.config.absolute()) if how.config else None,
                        "overrides": how.overrides or None,
                    },
                    idempotency_key=f"{how.deployment}:{line.label}:{collect.place(line.run).path.name}:{how.attempt}",
                    flow_run_name=f"refresh-{line.label}",
                    timeout=0,
                    as_subflow=False,
                )
            )
        line.state, line.detail = "sent", f"flow run {flow_run.name}"  # type: ignore[union-attr]
        sent[flow_run.id] = line  # type: ignore[union-attr]
        console.say(f"backfill: window {line.label} sent as {flow_run.name}")  # type: ignore[union-attr]
    if how.wait:
        with asking_the_server():
            _wait(sent)


def _wait(sent: dict[object, Line]) -> None:
    """Until each window's flow run has ended, or the store says that the window is finished."""
    from prefect.client.orchestration import get_client

    from flows.embedded.inline import insist

    with get_client(sync_client=True) as client:
        while sent:
            for name, line in list(sent.items()):
                state = insist(partial(client.read_flow_run, name)).state  # type: ignore[arg-type]
                ended = state is not None and state.is_final()
                settle(line)
                if line.state != "finished" and not ended:
                    continue
                del sent[name]
                if line.state != "finished" and state is not None:
                    line.detail = f"its flow run ended as {state.name}: {state.message or 'no message'}"[:300]
                console.say(f"backfill: window {line.label} {line.state}. {line.detail}".rstrip())
            if sent:
                time.sleep(2)

"""The ask stage over many articles against a loopback model server: throughput, memory, and what a kill costs.

    python -m bench.ask [--items 5000] [--in-flight 8] [--latency-ms 200] [--kills 3]

The peer is what the limit allows: so many requests under way, each taking the server's latency, and nothing else.
The server is a process of its own, so that its CPU time is not the client's. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.config import AskSection

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}"}
#: Articles to a committed shard: what a run takes.
SHARD = AskSection().batch_articles
SERVER = """
import json, sys
from support.ask_scale import written
from support.llm_server import LlmServer
with LlmServer(reply=written, latency_s=float(sys.argv[1]), keep_bodies=False) as server:
    print(server.url, flush=True)
    for _ in sys.stdin:
        print(json.dumps({"begun": server.begun, "answered": server.answered, "most": server.most_in_flight,
                          "distinct": len(server.seen), "tokens_in": server.tokens_in,
                          "tokens_out": server.tokens_out}), flush=True)
"""


class Server:
    """The loopback server in a process of its own."""

    def __init__(self, latency_s: float) -> None:
        command = [sys.executable, "-c", SERVER, str(latency_s)]
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self._line()

    def counts(self) -> dict[str, int]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, int] = json.loads(self._line())
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def start(url: str, home: Path, items: int, in_flight: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.ask_scale", url, str(home), str(items), str(in_flight), str(SHARD)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)


def undisturbed(items: int, in_flight: int, latency_s: float) -> None:
    server = Server(latency_s)
    try:
        with tempfile.TemporaryDirectory() as folder:
            out, _ = start(server.url, Path(folder), items, in_flight).communicate()
            told: dict[str, Any] = json.loads(out)
            counts = server.counts()
    finally:
        server.stop()
    allowed = in_flight / latency_s
    rate = items / told["seconds"]
    memory = told["memory_kb"]
    say(f"{items} articles, {in_flight} under way, {latency_s * 1000:.0f} ms: {told['seconds']:.1f} s")
    say(f"  {rate:.1f} replies/s of {allowed:.1f} allowed: {rate / allowed:.3f}")
    say(f"  most under way at the server: {counts['most']}")
    say(f"  CPU of the client per article: {told['cpu_seconds'] / items * 1000:.1f} ms")
    say(f"  memory after each tenth, MB: {', '.join(str(kb // 1024) for kb in memory)}")
    say(f"  memory at the end / after a fifth: {memory[-1] / memory[min(2, len(memory) - 1)]:.3f}")
    say(f"  kept {told['kept']}, lost {told['lost']}")
    say(f"  ledger and server agree on requests and tokens: {agree(told, counts)}")


def killed(items: int, in_flight: int, latency_s: float, kills: int) -> None:
    server = Server(latency_s)
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            for turn in range(kills):
                process = start(server.url, home, items, in_flight)
                while server.counts()["answered"] < items * (turn + 1) // (kills + 1):
                    time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
                process.communicate()
            time.sleep(latency_s + 1)
            stored = sum(1 for _ in (home / "llm").glob("??/*.json"))
            before = server.counts()
            out, _ = start(server.url, home, items, in_flight).communicate()
            told, after = json.loads(out), server.counts()
    finally:
        server.stop()
    say(f"{kills} kills: {stored} replies stored, {after['begun'] - before['begun']} asked for in the last run")
    say(f"  stored replies asked for again: {after['begun'] - before['begun'] - (items - stored)}")
    again = after["answered"] - after["distinct"]
    say(f"  answered while the process died, and lost with it: {again} (at most {kills * in_flight} can be)")
    say(f"  last run's ledger: {told['requests']} requests")


def agree(told: dict[str, Any], counts: dict[str, int]) -> bool:
    return (told["requests"], told["tokens_in"], told["tokens_out"]) == (
        counts["answered"],
        counts["tokens_in"],
        counts["tokens_out"],
    )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both measurements and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--latency-ms", type=float, default=200)
    parser.add_argument("--kills", type=int, default=3)
    told = parser.parse_args(arguments)
    undisturbed(told.items, told.in_flight, told.latency_ms / 1000)
    killed(min(told.items, 1_000), told.in_flight, told.latency_ms / 1000, told.kills)


if __name__ == "__main__":
    main()

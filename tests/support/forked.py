"""Commands as processes of their own without their start-up: forked from one that has imported what commands import.

    with Forked(folder, env) as forked:
        ended = forked.nest("status", "--json")

Each has the folder, the environment and the modules to itself. Prefect is not among the imports: it keeps the first
address it was imported with, so a command that uses it imports it itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

IMPORTED = (
    "flows.cli",
    "flows.stages.score",
    "flows.stages.snapshot",
    "flows.wiring",
    "engine.news.collect",
    "engine.questions.ask",
    "engine.snapshot.build",
    "engine.snapshot.hub",
    "segmentation.annotate",
    "datasets",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code (-9 where it did not end in time), and what it wrote."""

    code: int
    stdout: str
    stderr: str


class Forked:
    """The process that the commands are forked from; it ends with the context."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder, self.env = folder, dict(env)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        tests = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.forked"],
            cwd=self.folder,
            env={**self.env, "PYTHONPATH": os.pathsep.join([tests, self.env["PYTHONPATH"]])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.communicate(timeout=60)

    def nest(self, *words: str, timeout_s: float = 180.0) -> Ended:
        """`nest` with these words, to its end."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"words": words, "timeout_s": timeout_s}) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return Ended(code, *((self.folder / name).read_text(encoding="utf-8") for name in (".stdout", ".stderr")))


def serve() -> list[str]:
    """Fork a process for each line that is read and say how it ended. Returns only in these, with their words."""
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, path in enumerate((os.devnull, ".stdout", ".stderr")):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
            return list(told["words"])
        deadline = time.monotonic() + told["timeout_s"]
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        print(os.waitstatus_to_exitcode(ended[1]), flush=True)  # noqa: T201 - the answer on the pipe
    sys.exit(0)


if __name__ == "__main__":
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    from flows.cli import main

    main(serve())

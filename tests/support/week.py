"""The sample week as a user would run it: real processes, publishers and a model endpoint on loopback, kills.

with Week(tmp_path) as week:
    week.nest("refresh", "--window", WINDOW)        # a finished process
    run = week.start("refresh", "--window", WINDOW) # one to kill
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.core.store import locked, sha256_file
from flows.sample.config import LABEL, sample_overrides, to_toml
from flows.sample.server import SamplePublishers
from support.llm_server import LlmServer, Scripted, digest

ROOT = Path(__file__).resolve().parents[2]
WINDOW = LABEL
#: A few pages of one publisher keep a run short; what is run is the same code.
SMALL = {"collect.limit": 9, "score.segmenters": ["portable"], "ask.batch_articles": 2, "annotate.shard_images": 2}
PILOT = f"NEST_{WINDOW}.pilot9"
IN_FLIGHT = 2
REPLY = re.compile(rb"reply-([0-9a-f]{64})")
#: The endpoint's key; it must be found nowhere but in the environment.
PLANTED_KEY = "sk-planted-5f1e77c0ffee"


class PaidServer(LlmServer):
    """Remembers when each reply left and names each after its request, so that a reply lost in a kill can be told from
    one that was kept and asked for all the same."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.sent: list[tuple[float, str]] = []

    def answer(self, path: str, body: dict[str, Any]) -> Scripted:
        told = super().answer(path, body)
        if isinstance(told.body, Mapping) and "id" in told.body:
            return replace(told, body={**told.body, "id": f"reply-{digest(body)}"})
        return told

    def count(self, body: Mapping[str, Any], scripted: Scripted, *, times: int = 1) -> None:
        super().count(body, scripted, times=times)
        name = digest(body)
        with self.lock:
            if times > 0:
                self.sent.append((time.monotonic(), name))
            else:
                self.sent.remove(next(one for one in reversed(self.sent) if one[1] == name))


class Week:
    """A home, the publishers and the model endpoint. `writer` is llm or template."""

    def __init__(
        self,
        folder: Path,
        *,
        writer: str = "llm",
        latency_s: float = 0.0,
        overrides: Mapping[str, Any] | None = None,
        publishers: SamplePublishers | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.publishers = publishers or SamplePublishers()
        self.llm = PaidServer(latency_s=latency_s, key=PLANTED_KEY)
        self.kills: list[tuple[float, set[str]]] = []
        self.settings = {"ask.writer": writer, **dict(overrides or {})}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.publishers.__enter__()
        self.llm.__enter__()
        self.write_config(self.settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.llm.__exit__(kind, error, trace)
        self.publishers.__exit__(kind, error, trace)

    def write_config(self, settings: Mapping[str, Any]) -> None:
        told: dict[str, Any] = {
            "home": str(self.home),
            **sample_overrides(self.publishers.port),
            "llm": {"base_url": self.llm.url, "model": "test-model", "max_in_flight": IN_FLIGHT},
        }
        for dotted, value in settings.items():
            place = told
            *sections, last = dotted.split(".")
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = value
        (self.folder / "nest.toml").write_text(to_toml(told), encoding="utf-8")

    def env(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "OPENAI", "HF_", "PREFECT"))}
        return {**clean, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": self.llm.key}

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        log = (self.folder / "log.txt").open("a", encoding="utf-8")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "flows.cli", *words],
                cwd=self.folder,
                env={**self.env(), **(env or {})},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
                # a test run in the background of a shell hands down an ignored Ctrl-C; a user's terminal does not
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def nest(
        self, *words: str, code: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; the exit code must be `code`."""
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=self.folder,
            env={**self.env(), **(env or {})},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == code, f"nest {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def kill(self, run: subprocess.Popen[str]) -> bool:
        """kill -9; True if it was still running."""
        alive = run.poll() is None
        if alive:
            run.send_signal(signal.SIGKILL)
        run.wait(timeout=60)
        if alive:
            self.killed()
        return alive

    def killed(self) -> None:
        """To be said when a process of this week has been killed: what it had kept until then is noted."""
        kept = (path.read_bytes() for path in (self.home / "cache").rglob("*.json"))
        self.kills.append((time.monotonic(), {name.decode() for told in kept for name in REPLY.findall(told)}))

    def kill_when(self, words: tuple[str, ...], reached: Callable[[], bool], *, after_s: float = 0.0) -> bool:
        """Start, wait until `reached`, wait `after_s` more, and kill; True if it was still running then."""
        run = self.start(*words)
        deadline = time.monotonic() + 600
        while run.poll() is None and not reached() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(after_s)
        return self.kill(run)

    def paid_twice(self) -> list[str]:
        """Requests answered again without need: no process was killed between the two answers, or the first one had
        been kept by then. What was on its way in a kill cannot have been kept; more than two for each place among
        those under way (one read, one waiting to be) are too many, and then those are named too."""
        in_flight = int(self.settings.get("llm.max_in_flight", IN_FLIGHT))
        first: dict[str, float] = {}
        lost: list[list[str]] = [[] for _ in self.kills]
        twice = []
        for moment, name in self.llm.sent:
            between = [i for i, (kill, _) in enumerate(self.kills) if name in first and first[name] <= kill < moment]
            if name in first and (not between or any(name in self.kills[i][1] for i in between)):
                twice.append(name)
            elif between:
                lost[between[0]].append(name)
            first[name] = moment
        return twice + [name for names in lost if len(names) > 2 * in_flight for name in names]

    def servers_left(self) -> list[int]:
        """Processes of the embedded server of this home that are still there."""
        left = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes()
                environment = (path.parent / "environ").read_bytes()
            except OSError:
                continue
            if b"flows.embedded.server" in command and str(self.home).encode() in environment:
                left.append(int(path.parent.name))
        return left


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file below a folder."""
    return {str(p.relative_to(folder)): sha256_file(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def asked(home: Path) -> dict[str, str]:
    """Digests of what the ask stage made, without what belongs to the clock and to locks."""
    (stage,) = (path.parent for path in home.glob("windows/*/ask/*/manifest.json"))
    found = digests(stage)
    return {name: value for name, value in found.items() if not name.endswith("run.json") and "lock" not in name}


def rubbish(home: Path) -> list[Path]:
    """What interrupted writes left."""
    return sorted(home.rglob(".tmp-*"))


def holding(folder: Path, needle: str) -> list[Path]:
    """Files below a folder whose bytes hold a text."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and needle.encode() in path.read_bytes()]


def ready_database(home: Path, cache: Path) -> None:
    """Give a home the embedded server's migrated database, which takes twenty seconds to make. It is made once for all
    the processes of a test run, beside the folders of the tests: `cache` is a path in the test's own."""
    from flows.embedded.start import prefect

    base = cache.parents[1]
    shared = (base.parent if base.name.startswith("popen-") else base) / "ready-database"
    with locked(shared / ".lock", wait_s=300):
        if not (shared / "made").exists():
            with prefect(shared):
                pass
            (shared / "made").touch()
    shutil.copytree(shared / "prefect", home / "prefect", dirs_exist_ok=True)

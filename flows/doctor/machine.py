"""What this machine gives: packages, room, a task runner, a Prefect server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from engine.core.config import Config
from flows.doctor.endpoint import endpoint
from flows.doctor.finding import Finding

FREE_BYTES = 5_000_000_000


def packages() -> Iterator[Finding]:
    """Whether the four packages are this tree's own."""
    root = Path(__file__).resolve().parents[2]
    for name in ("flows", "engine", "segmentation", "inference"):
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != root:
            yield Finding(
                "bad", f"the module '{name}' comes from {origin}", f"remove the package that shadows {root / name}"
            )
    yield Finding("good", f"Python {sys.version.split()[0]}, packages are our own")


def _takes_files(folder: Path) -> bool:
    """Tried, not asked: rights do not tell of file systems that take no files."""
    try:
        with tempfile.TemporaryDirectory(prefix=".nest-doctor-", dir=folder):
            return True
    except OSError:
        return False


def home_folder(config: Config) -> Iterator[Finding]:
    """Whether the home can be written, and how much room there is."""
    home = config.home
    there = home
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not _takes_files(there):
        yield Finding("bad", f"{home} cannot be written", "set home in nest.toml or NEST_HOME to a place of yours")
        return
    free = shutil.disk_usage(there).free
    state: Literal["good", "warn", "bad"] = "good" if free >= FREE_BYTES else "warn"
    if not free:
        state = "bad"
    mend = "" if state == "good" else "a week with images takes some gigabytes: free some space, 'nest gc' helps"
    yield Finding(state, f"home {home}, {free / 1e9:.0f} GB free", mend)


def task_runner(config: Config) -> Iterator[Finding]:
    """Whether the package of another task runner is installed."""
    told = config.flows.task_runner
    module, _, name = told.partition(":")
    if told and (not name or importlib.util.find_spec(module) is None):
        yield Finding("bad", f"[flows] task_runner '{told}' is not installed", "pip install 'nest-data-engine[dask]'")


def deployments(config: Config) -> Iterator[Finding]:
    """Whether there is a server for the deployments that are named."""
    told = [name for name in (config.flows.annotate_deployment, config.flows.score_deployment) if name]
    if told and not os.environ.get("PREFECT_API_URL"):
        yield Finding(
            "bad",
            f"{' and '.join(told)} are deployments of a Prefect server, and none is named",
            "set PREFECT_API_URL, or leave them out of [flows] to work in this process",
        )


def prefect(config: Config) -> Iterator[Finding]:
    """Where the graph runs."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        yield Finding("good", f"Prefect runs embedded, on {socket.gethostname()}")
        return
    yield from endpoint(
        url.rstrip("/") + "/health", name="the Prefect server", mend="start it, or unset PREFECT_API_URL"
    )

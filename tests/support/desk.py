"""A home with one finished snapshot, and a Hub on loopback: what the commands for publishing and quoting work on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.snapshot.revise import Row, read_rows
from support import snapshots
from support.hub import LoopbackHub

ROOT = Path(__file__).parents[2]
NAME = snapshots.WINDOW.name
REPO = f"news/{NAME}"


@dataclass
class Desk:
    """The folder of the home, and the Hub; `nest` runs the command there as a user would."""

    folder: Path
    hub: LoopbackHub

    @property
    def snapshot(self) -> Path:
        return self.folder / "home" / "snapshots" / NAME

    def nest(self, *words: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "OPENAI", "HF_", "PREFECT"))}
        told = {**clean, "PYTHONPATH": str(ROOT), **self.hub.environ(self.folder / "hf"), **env}
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=self.folder,
            env={**told, "NEST__HOME": "home"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done


@contextmanager
def desk_with_predictions(folder: Path, predicted: Callable[[int, Row], Mapping[str, Any]]) -> Iterator[Desk]:
    """A snapshot of five rows and `mine.jsonl`: what is predicted for the row at each place, beside its id."""
    with LoopbackHub() as hub:
        found = Desk(folder, hub)
        snapshots.snapshot(found.snapshot, 5)
        lines = [{"id": row.id, **predicted(place, row)} for place, row in enumerate(read_rows(found.snapshot))]
        (folder / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
        yield found

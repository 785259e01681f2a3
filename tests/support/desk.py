"""A home with one finished snapshot, and a Hub on loopback: what the commands for publishing and quoting work on."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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

"""A home with one small snapshot, and the command run in it against a Hub on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from engine.snapshot.revise import read_rows
from engine.snapshot.rows import Row
from support.hub import LoopbackHub
from support.snapshots import snapshot

ROOT = Path(__file__).resolve().parents[2]
NAME, WINDOW, REPO = "NEST_261123_261129", "261123_261129", "news/NEST_261123_261129"


class Home:
    """A home with one snapshot, and the command run in it."""

    def __init__(self, folder: Path, hub: LoopbackHub, hub_section: str) -> None:
        self.folder, self.hub = folder, hub
        self.root = folder / "home"
        self.snapshot = self.root / "snapshots" / NAME
        snapshot(self.snapshot, 5)
        (folder / "nest.toml").write_text(
            'home = "home"\n[snapshot]\ncontact = "removal@nest.example"\n'
            f'[hub]\nrepo = "news/{{name}}"\n{hub_section}\n'
        )

    def nest(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "HF_"))}
        env |= {"PYTHONPATH": str(ROOT), **self.hub.environ(self.folder / "hf")}
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def rows(self) -> list[Row]:
        return list(read_rows(self.snapshot))


def save(hub: LoopbackHub, folder: Path, revision: str) -> Path:
    for name, data in hub.files(REPO, revision).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def values(value: Any) -> Iterator[bytes]:
    """Every text and every bytes in a decoded row."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key.encode()
            yield from values(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from values(inner)
    elif isinstance(value, bytes):
        yield value
    elif value is not None:
        yield str(value).encode()


def everything(hub: LoopbackHub, folder: Path) -> bytes:
    """All bytes of the repository: files of every commit, decoded columns, schemas, commit messages, names."""
    repo = hub.repo(REPO)
    parts = [repr(repo).encode(), *(name.encode() for name in repo.large)]
    parts += [bytes(data) for data in repo.large.values()]
    for path in folder.rglob("*"):
        parts += [path.name.encode(), path.read_bytes() if path.is_file() else b""]
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            parts += [str(table.schema).encode(), *values(table.to_pylist())]
    return b"\n".join(parts)

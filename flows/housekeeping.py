"""`nest gc`: leftovers of interrupted writes, and blobs that no finished stage names any more."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from pathlib import Path

from engine.core.errors import RefusedError
from engine.core.store.files import TEMPORARY, sweep
from engine.core.store.lock import held, locked

_DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")


def collect_garbage(home: Path, *, dry_run: bool = False) -> dict[str, int]:
    """Counts of what was (or would be) removed: leftovers, blobs, and the blobs' bytes.

    Raises `RefusedError` while a stage is being written: its blobs may not be named yet.
    """
    from contextlib import ExitStack

    with ExitStack() as stack:
        for lock in sorted(home.glob("windows/*/*/.*.lock")):
            try:
                stack.enter_context(locked(lock))
            except RefusedError as error:
                raise RefusedError(f"a run is going on: {error}") from error
        rubbish = len([*home.rglob(f"{TEMPORARY}*")]) if dry_run else sweep(home)
        for folder in _without_predictions(home):
            rubbish += 1
            if not dry_run:
                shutil.rmtree(folder)
        named = _named_digests(home)
        count = size = 0
        for path in sorted((home / "blobs").glob("*/*")):
            if path.name.split(".")[0].encode() not in named:
                count += 1
                size += path.stat().st_size
                if not dry_run:
                    path.unlink()
    return {"rubbish": rubbish, "blobs": count, "bytes": size}


def _without_predictions(home: Path) -> list[Path]:
    """Folders of segmenters that hold nothing but locks which nobody holds: what was to be scored did not fit."""
    return [
        folder
        for folder in sorted((home / "predictions").glob("*/*"))
        if folder.is_dir()
        if all(path.suffix == ".lock" and not held(path) for path in folder.iterdir())
    ]


def _named_digests(home: Path) -> set[bytes]:
    named: set[bytes] = set()
    for folder in ("windows", "harvest"):
        for path in sorted((home / folder).rglob("*.jsonl")):
            with path.open("rb") as handle:
                for line in handle:
                    named.update(_DIGEST.findall(line))
    for path in sorted((home / "cache" / "search").glob("*.sqlite")):
        named.update(_digests_of_index(path))
    return named


def _digests_of_index(path: Path) -> set[bytes]:
    """Blobs that a local search index names: the reference pictures lie in the blob store as well."""
    found: set[bytes] = set()
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, (str, bytes)):
                        found.update(_DIGEST.findall(value.encode() if isinstance(value, str) else value))
    return found

"""Removing needles from a home directory: blobs, caches, harvest, stages, predictions, reports.

Lines of JSON Lines files go one by one, everything else goes as a file. A finished stage keeps its key: its manifest
keeps the digests that later stages were keyed by and notes the digests after the purge, so nothing is computed anew
and a check still knows the files. Snapshot folders are rebuilt elsewhere (`takedown`).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes, write_atomic
from engine.core.store.files import TEMPORARY
from engine.snapshot.needles import Needles
from engine.snapshot.optout import FILE as OPT_OUT

#: Folders of a home that hold what was computed from the news, and so must be searched.
SNAPSHOTS = "snapshots"
RECEIPTS = "receipts"
MANIFEST = "manifest.json"


@dataclass(slots=True)
class Purged:
    """What was removed, by kind of place; `left` are files that hold a needle and could not be cleaned."""

    lines: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)


def purge(
    home: Path, needles: Needles, *, ids: Collection[str], reports_of: Collection[str] = (), dry_run: bool = False
) -> Purged:
    """Remove from a home every line and file that holds a needle or belongs to a removed row.

    `ids` are ids of rows that go: their lines in predictions go too, and every report that has one of them (a mixture's
    as well), since its gallery shows small pictures whose bytes nobody can search for. `reports_of` are names of
    snapshots that lost rows: all their reports go. With `dry_run` only counts.
    """
    found = Purged()
    for place in sorted((home / "reports").glob("*/*")):
        if place.is_dir() and (place.parent.name in reports_of or _shows(place, ids)):
            found.files["reports"] += sum(path.is_file() for path in place.rglob("*"))
            if not dry_run:
                shutil.rmtree(place)
    for path in sorted(_files(home)):
        kind = path.relative_to(home).parts[0]
        if path.suffix == ".jsonl":
            _purge_lines(path, kind, needles, ids, found, dry_run=dry_run)
        elif kind == "predictions" and any(path.name.startswith(name) for name in ids):
            _remove(path, kind, found, dry_run=dry_run)
        elif needles.in_bytes(path.read_bytes()):
            if path.name == MANIFEST:
                found.left.append(path.relative_to(home).as_posix())
            else:
                _remove(path, kind, found, dry_run=dry_run)
    return found


def holding(home: Path, needles: Needles, *, ids: Collection[str] = ()) -> list[str]:
    """Files of a home, snapshots apart, that still hold a needle; paths relative to the home."""
    left = []
    for path in sorted(_files(home)):
        data = path.read_bytes()
        if needles.in_bytes(data) or (path.parts[-1] and _names_row(path, home, ids)):
            left.append(path.relative_to(home).as_posix())
    return left


def _shows(report: Path, ids: Collection[str]) -> bool:
    """Whether a report's samples include one of these rows."""
    try:
        text = (report / "report.json").read_bytes()
    except OSError:
        return False
    return any(name.encode() in text for name in ids)


def _names_row(path: Path, home: Path, ids: Collection[str]) -> bool:
    return path.relative_to(home).parts[0] == "predictions" and any(path.name.startswith(name) for name in ids)


def _files(home: Path) -> Iterator[Path]:
    """All files that may hold news: not the weights, not the opt-out list and receipts, which hold no needle."""
    for top in sorted(home.iterdir()) if home.is_dir() else []:
        if top.name in ("weights", RECEIPTS, SNAPSHOTS, OPT_OUT) or top.name.startswith(TEMPORARY):
            continue
        if top.is_file():
            yield top
        else:
            yield from (path for path in top.rglob("*") if path.is_file() and not path.is_symlink())


def _remove(path: Path, kind: str, found: Purged, *, dry_run: bool) -> None:
    found.files[kind] += 1
    if not dry_run:
        path.unlink(missing_ok=True)


def _purge_lines(
    path: Path, kind: str, needles: Needles, ids: Collection[str], found: Purged, *, dry_run: bool
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not _goes(line, needles, ids)]
    if len(kept) == len(lines):
        return
    found.lines[kind] += len(lines) - len(kept)
    if dry_run:
        return
    data = b"".join(kept)
    write_atomic(path, data)
    _note(path, data)


def _goes(line: bytes, needles: Needles, ids: Collection[str]) -> bool:
    if needles.in_bytes(line):
        return True
    if not ids:
        return False
    try:
        raw = json.loads(line)
    except ValueError:
        return False
    if not isinstance(raw, dict):
        return False
    # in a mixture a sample's own id comes after the part's name
    return str(raw.get("sample_id")).rpartition("/")[2] in ids or (raw.get("id") in ids and "article" in raw)


def _note(path: Path, data: bytes) -> None:
    """Write the new digest of a stage's file into its manifest, beside the one that keys were made of."""
    manifest = path.parent / MANIFEST
    if not manifest.is_file():
        return
    try:
        told: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        return
    if path.name in told.get("files", {}):
        told["purged"] = {**told.get("purged", {}), path.name: sha256_bytes(data)}
    elif path.name in told.get("bytes", {}):  # a shard, which counts as done only at its size
        told["bytes"] = {**told["bytes"], path.name: len(data)}
    else:
        return
    write_atomic(manifest, canonical_json(told).encode())


def temporary_left(home: Path) -> list[str]:
    """Remains of interrupted writes, which a purge removes as well since nobody vouches for them."""
    return [path.relative_to(home).as_posix() for path in home.rglob(f"{TEMPORARY}*")]

"""A new folder from an old one: its rows read back, changed or left out, and everything written anew.

Used by corrections (`amend`), by takedowns and by rehydration. The old folder is only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.core.errors import TerminalError
from engine.core.schema import Erratum, SnapshotManifest
from engine.core.store import committed_directory
from engine.snapshot.assemble import assemble, edition_of
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import DATA, PROVENANCE, SUPERSEDED
from engine.snapshot.readback import row_digest
from engine.snapshot.rows import Row
from engine.snapshot.verify_rows import iterate

# the reason in the errata where rows differ because the window was built again, not because somebody changed them
REBUILT = "made anew from other input or settings"


def read_rows(folder: Path) -> Iterator[Row]:
    """Rows of a snapshot folder in order. Raises `TerminalError` if data and provenance don't go together."""
    data = (row for path in sorted((folder / DATA).glob("*.parquet")) for row in iterate(path))
    origin = (row for path in sorted((folder / PROVENANCE).glob("*.parquet")) for row in iterate(path, batch=64))
    try:
        for default, provenance in zip(data, origin, strict=True):
            if default["id"] != provenance["id"]:
                raise TerminalError(f"{folder}: the row {default['id']} has no provenance: check it with 'nest verify'")
            yield Row(str(default["id"]), default, provenance, size_of(default))
    except (OSError, ValueError) as error:
        raise TerminalError(f"{folder} cannot be read ({error}): check it with 'nest verify'") from error


def size_of(default: dict[str, Any]) -> int:
    """Bytes of a row's pictures, masks and texts."""
    files = [*(default.get("images") or ()), *(default.get("annotations") or ())]
    texts = [value for value in default.values() if isinstance(value, str)]
    rest = sum(len(mask["counts"]) + 300 for mask in default.get("masks") or ())
    return sum(len(item["bytes"] or b"") for item in files) + sum(len(text.encode()) for text in texts) + rest


def rewrite(folder: Path, out: Path, *, change: Callable[[Row], Row | None], **changes: Any) -> SnapshotManifest:
    """Write `out` (by one rename) with the rows that `change` gives back; `changes` are fields of the edition.

    Raises `TerminalError` if `out` exists or the old folder is damaged.
    """
    manifest = read_manifest(folder)
    if out.exists():
        raise TerminalError(f"{out} exists: choose another place or remove it")
    rows = (changed for row in read_rows(folder) if (changed := change(row)) is not None)
    with committed_directory(out) as temporary:
        return assemble(temporary, rows, edition_of(manifest, **changes))


def next_revision(revision: str) -> str:
    """r2 after r1. Raises `TerminalError` for something else than r and a number."""
    match = re.fullmatch(r"r(\d+)", revision, re.ASCII)
    if match is None:
        raise TerminalError(f"'{revision}' is not a revision like r1: it cannot be counted on")
    return f"r{int(match[1]) + 1}"


def put_in_place(new: Path, place: Path) -> Path:
    """Make a new revision the current one; the old folder moves to `.superseded/<name>.<revision>` beside it.

    Returns where the old one lies now. Raises `TerminalError` if that revision was put aside before.
    """
    old = read_manifest(place)
    aside = place.parent / SUPERSEDED / f"{place.name}.{old.revision}"
    if aside.exists():
        raise TerminalError(f"{aside} exists: revision {old.revision} was replaced before")
    aside.parent.mkdir(parents=True, exist_ok=True)
    place.rename(aside)
    new.rename(place)
    return aside


def changed_rows(old: Path, new_digests: Mapping[str, bytes], *, revision: str, because: str) -> list[Erratum]:
    """Errata for the difference between an old folder and the rows of a new one (id to `row_digest` of the row)."""
    errata = []
    there = {row.id: row_digest(row.default) for row in read_rows(old)}
    for name in sorted(there.keys() | new_digests.keys()):
        if name not in new_digests:
            change = "removed"
        elif name not in there:
            change = "added"
        elif there[name] != new_digests[name]:
            change = "changed"
        else:
            continue
        errata.append(Erratum(revision=revision, sample_id=name, change=change, because=because))
    return errata

"""`snapshot.json`: reading and writing it so that a changed byte shows.

The file is the canonical JSON of a `SnapshotManifest` and a newline. Its `digest` covers the record itself, its
`files` cover every other file of the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from engine.core.errors import ConfigError, NestError, TerminalError
from engine.core.schema import FileDigest, SnapshotManifest, why
from engine.core.store import sha256_bytes, sha256_file
from engine.snapshot.names import HUB_FILES, MANIFEST


def seal(manifest: SnapshotManifest) -> SnapshotManifest:
    """The manifest with its own digest."""
    bare = manifest.model_copy(update={"digest": ""})
    return bare.model_copy(update={"digest": sha256_bytes(bare.line().encode())})


def to_bytes(manifest: SnapshotManifest) -> bytes:
    """The content of `snapshot.json`."""
    return (seal(manifest).line() + "\n").encode()


def from_bytes(data: bytes) -> SnapshotManifest:
    """A manifest from the content of `snapshot.json`. Raises ValueError if it is not exactly what was written."""
    try:
        raw = json.loads(data)
        manifest = SnapshotManifest.read(raw)
    except (UnicodeDecodeError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not a snapshot manifest: {why(error)}") from error
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if raw.get("schema_version") == SnapshotManifest.VERSION and to_bytes(manifest) != data:
        raise ValueError("its digest does not match its content")
    return manifest


def read_manifest(folder: Path) -> SnapshotManifest:
    """The manifest of a snapshot folder. Raises `TerminalError` with what is wrong."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise ConfigError(f"there is no snapshot folder {folder}")
    try:
        return from_bytes(path.read_bytes())
    except FileNotFoundError as error:
        raise TerminalError(f"{folder} has no {MANIFEST}: it is not a finished snapshot") from error
    except (OSError, ValueError) as error:
        raise TerminalError(f"{path} is damaged ({error}): build the snapshot again") from error
    except NestError:
        raise


def file_digests(folder: Path) -> tuple[FileDigest, ...]:
    """Digests of all files of the folder but the manifest, sorted by path."""
    return tuple(
        FileDigest(path=name, sha256=sha256_file(folder / name), size=(folder / name).stat().st_size)
        for name in file_names(folder)
    )


def file_names(folder: Path) -> list[str]:
    """Paths of the folder's files with forward slashes, without the manifest and what the Hub adds."""
    return sorted(_own(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))


def _own(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if name != MANIFEST and name not in HUB_FILES and not name.startswith(".cache/"))

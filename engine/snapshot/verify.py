"""`nest verify`: is a snapshot folder what it says it is?

Our own folders are held against `snapshot.json` (hashes of every file, counts, its own digest), their columns
against the declared ones, the card against the data, and every row is decoded. A folder of the published NEST
layout, which has no manifest and no provenance, is checked as far as it goes, and what is missing is said.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError
from engine.core.schema import SnapshotManifest
from engine.core.store import sha256_file
from engine.snapshot.features import default_features, provenance_features
from engine.snapshot.findings import Finding, Findings, Kind
from engine.snapshot.manifest import file_names, from_bytes
from engine.snapshot.names import CARD, DATA, MANIFEST, PROVENANCE
from engine.snapshot.verify_card import DataFigures, check_card
from engine.snapshot.verify_rows import Seen, check_data, check_provenance

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

__all__ = ["Finding", "Kind", "verify", "verify_repo"]

_SHARD = re.compile(r"(?P<split>\w+(?:\.\w+)*)-(?P<index>\d{5})-of-(?P<count>\d{5})\.parquet", re.ASCII)


def verify(folder: Path, *, repo: str | None = None, rows: bool = True, workers: int = 2) -> list[Finding]:
    """Everything that is wrong with a snapshot folder; an empty list means that it is good.

    `repo` is the Hub repository the folder came from, if any: the card must name it and no other. With `rows`
    False only files, hashes, columns and counts are checked, no picture is decoded. Raises `ConfigError` if there
    is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no snapshot folder {folder}")
    found = Findings()
    manifest = _check_manifest(folder, found)
    intact = _check_files(folder, manifest, found)
    publish = manifest.publish if manifest else "bytes"
    data = sorted((folder / DATA).glob("*.parquet"))
    origin = sorted((folder / PROVENANCE).glob("*.parquet"))
    if not data:
        found.note(DATA, Kind.NO_DATA, "there is no Parquet file")
    _check_shards(data, folder, found)
    _check_shards(origin, folder, found)
    figures = DataFigures()
    features = default_features(publish)
    for path in data:
        _check_columns(path, folder, features, figures, found, exact=manifest is not None)
    provenance_rows = DataFigures()
    for path in origin:
        _check_columns(path, folder, provenance_features(), provenance_rows, found, exact=True)
    whole = figures.whole and provenance_rows.whole
    if whole and manifest and (figures.rows != manifest.rows or provenance_rows.rows != manifest.rows):
        detail = f"it says {manifest.rows} rows, the data has {figures.rows}, the provenance {provenance_rows.rows}"
        found.note(MANIFEST, Kind.ROWS, detail)
    _check_card(folder, figures, manifest, repo, found)
    if rows:
        _check_rows(folder, data, origin, manifest, intact, found, workers)
    elif not origin:
        found.note(
            PROVENANCE, Kind.PROVENANCE_MISSING, "there is no provenance: rows say nothing of where they come from"
        )
    return found.closed()


def verify_repo(spec: str, *, token: str | None = None, endpoint: str | None = None) -> list[Finding]:
    """The same for a revision on the Hub, `OWNER/NAME[@REVISION]`: downloaded, checked, and thrown away.

    See `verify_remote.verify_remote`, which also tells the commit.
    """
    from engine.snapshot.verify_remote import verify_remote

    return list(verify_remote(spec, token=token, endpoint=endpoint).findings)


def _check_manifest(folder: Path, found: Findings) -> SnapshotManifest | None:
    try:
        return from_bytes((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        found.note(MANIFEST, Kind.MANIFEST_MISSING, "there is none: nothing vouches for the files")
    except (OSError, ValueError) as error:
        found.note(MANIFEST, Kind.MANIFEST_DAMAGED, str(error))
    return None


def _check_files(folder: Path, manifest: SnapshotManifest | None, found: Findings) -> set[str]:
    """Hold files against the manifest; returns those whose content is what it says."""
    there = file_names(folder)
    if manifest is None:
        return set(there)
    intact = set()
    listed = {item.path: item for item in manifest.files}
    for name in there:
        if name not in listed:
            found.note(name, Kind.FILE_EXTRA, "the manifest does not list it")
    for name, item in sorted(listed.items()):
        path = folder / name
        if not path.is_file():
            found.note(name, Kind.FILE_MISSING, "the manifest lists it, it is not there")
        elif path.stat().st_size != item.size or sha256_file(path) != item.sha256:
            found.note(name, Kind.FILE_CHANGED, "its sha256 is not the one in the manifest")
        else:
            intact.add(name)
    return intact


def _check_shards(paths: list[Path], folder: Path, found: Findings) -> None:
    """Shards are 0 to N-1 of one N; two generations side by side double the rows for some readers."""
    groups: dict[str, dict[int, set[int]]] = {}
    for path in paths:
        match = _SHARD.fullmatch(path.name)
        if match is None:
            found.note(path.relative_to(folder).as_posix(), Kind.SHARD_NAMES, "not named split-00000-of-00001.parquet")
            continue
        groups.setdefault(match["split"], {}).setdefault(int(match["count"]), set()).add(int(match["index"]))
    where = paths[0].parent.relative_to(folder).as_posix() if paths else ""
    for split, counts in sorted(groups.items()):
        if len(counts) > 1:
            told = " and ".join(f"of {count}" for count in sorted(counts))
            found.note(where, Kind.SHARD_NAMES, f"split {split} has shards of several generations: {told}")
        for count, indices in sorted(counts.items()):
            if missing := sorted(set(range(count)) - indices):
                found.note(where, Kind.SHARD_NAMES, f"split {split}: shard {missing[0]} of {count} is missing")


def _check_columns(
    path: Path, folder: Path, features: Features, figures: DataFigures, found: Findings, *, exact: bool
) -> None:
    import pyarrow.parquet as pq

    name = path.relative_to(folder).as_posix()
    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (OSError, ValueError) as error:
        found.note(name, Kind.PARQUET_DAMAGED, f"cannot be read: {error}")
        figures.whole = False
        return
    figures.rows += metadata.num_rows
    figures.files_bytes += path.stat().st_size
    # the encoded size of a column is the closest a Parquet footer comes to the bytes of its values
    for n in range(metadata.num_row_groups):
        figures.data_bytes += metadata.row_group(n).total_byte_size
    wanted = features.arrow_schema
    figures.features = features
    if schema.remove_metadata() != wanted.remove_metadata():
        if schema.names != wanted.names or exact:
            there, ours = _types(schema), _types(wanted)
            odd = [text for text in there if text not in ours] + [f"no {text}" for text in ours if text not in there]
            found.note(name, Kind.SCHEMA, f"other columns than the published set: {'; '.join(odd) or 'another order'}")
    elif exact and (schema.metadata or {}).get(b"huggingface") != wanted.metadata[b"huggingface"]:
        found.note(name, Kind.SCHEMA, "it does not declare the features of the published set")


def _types(schema: pa.Schema) -> list[str]:
    # readers and writers name the items of a list differently, which makes no difference
    return [f"{field.name}: {field.type}".replace("<element: ", "<item: ") for field in schema]


def _check_card(
    folder: Path, figures: DataFigures, manifest: SnapshotManifest | None, repo: str | None, found: Findings
) -> None:
    try:
        text = (folder / CARD).read_text(encoding="utf-8")
    except FileNotFoundError:
        found.note(CARD, Kind.CARD_MISSING, "there is no card")
        return
    except (OSError, UnicodeDecodeError) as error:
        found.note(CARD, Kind.CARD_INVALID, str(error))
        return
    check_card(text, figures, manifest=manifest, repo=repo, found=found)


def _check_rows(
    folder: Path,
    data: list[Path],
    origin: list[Path],
    manifest: SnapshotManifest | None,
    intact: set[str],
    found: Findings,
    workers: int,
) -> None:
    seen = Seen()
    for path in data:
        name = path.relative_to(folder).as_posix()
        # a file whose hash is wrong is checked all the same: the rows that are hurt are worth naming
        check_data(path, name, seen, found, ordered=manifest is not None, workers=workers)
    if not origin:
        found.note(PROVENANCE, Kind.PROVENANCE_MISSING, "there is none: rows say nothing of where they come from")
        return
    known: set[str] = set()
    told = [check_provenance(path, path.relative_to(folder).as_posix(), seen, known, found) for path in origin]
    if all(told):
        for missing in sorted(seen.masks.keys() - known):
            found.note(PROVENANCE, Kind.PROVENANCE_MISSING, f"the row {missing} has none")
    if manifest and intact:
        pictures = len({digest for told in seen.pictures.values() for digest in told})
        if manifest.publish == "bytes" and pictures > manifest.images:
            found.note(MANIFEST, Kind.ROWS, f"it says {manifest.images} distinct pictures, the data has {pictures}")

"""The files of a snapshot as `nest` reads them: finding them, and looking at their columns before any row is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError, TerminalError

COLUMNS = ("id", "question", "answer", "images", "annotations")


def locate(source: Path | str, *, cache_dir: Path | None, endpoint: str | None) -> tuple[Path, str]:
    """Where the data lie on this machine, and the commit if they came from the Hub."""
    path = Path(source)
    if path.exists():
        return path, ""
    text = str(source)
    if isinstance(source, Path) or not re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", text, re.ASCII):
        raise ConfigError(f"there is no snapshot at {text}: give a folder, a Parquet file or owner/name@revision")
    repo, _, revision = text.partition("@")
    from inference.benchmarks.hub import download

    return download(repo, revision=revision or None, cache_dir=cache_dir, endpoint=endpoint)


def data_files(path: Path, split: str) -> list[Path]:
    """The Parquet files of one split. Raises `ConfigError` for none, `TerminalError` for shards that don't match."""
    if path.is_file():
        return [path]
    # one generation of shards: stale ones of another count must not be read beside it
    files = sorted(path.glob(f"data/{split}-*.parquet")) or sorted(path.glob(f"{split}-*.parquet"))
    if not files:
        raise ConfigError(f"{path} holds no data/{split}-*.parquet: is it the folder of a snapshot?")
    totals = {match[1] for file in files if (match := re.search(r"-of-(\d+)\.parquet$", file.name))}
    if len(totals) > 1:
        raise TerminalError(
            f"{path}: shards of different generations lie side by side (of {', '.join(sorted(totals))}): "
            "remove the stale ones"
        )
    if totals and len(files) != int(next(iter(totals))):
        raise TerminalError(f"{path}: {len(files)} of {int(next(iter(totals)))} shards of split {split} are there")
    return files


def check_columns(file: Path) -> int:
    """Number of rows of a file that has the published columns. Raises `ConfigError` and `TerminalError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            names, count = set(parquet.schema_arrow.names), int(parquet.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{file} cannot be read as Parquet: {error}") from error
    if "image_urls" in names and "images" not in names:
        raise ConfigError(
            f"{file.parent.parent} was published as addresses, it has no pictures: "
            f"fetch them with 'nest rehydrate {file.parent.parent} OUT' and use the folder OUT"
        )
    if missing := [column for column in COLUMNS if column not in names]:
        raise TerminalError(f"{file} has no column {', '.join(missing)}: found {', '.join(sorted(names))}")
    return count


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """`snapshot.json` as it stands, {} where there is none."""
    path = folder / "snapshot.json"
    if not path.is_file():
        return {}
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TerminalError(f"{path} is not JSON: {error}") from error
    return found


def ids_before(files: list[Path], file: Path, index: int) -> Iterator[str]:
    """Ids of all rows before a row of a file."""
    import pyarrow.parquet as pq

    for other in files:
        ids = pq.read_table(other, columns=["id"])["id"].to_pylist()
        yield from ids[:index] if other == file else ids
        if other == file:
            return

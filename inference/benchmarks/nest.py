"""Snapshots of NEST: our folder, the official layout of five columns, and either of them on the Hub.

The rows come from the Parquet files of one split, in file order. Where the snapshot has a `provenance` config,
its row of the same id adds aliases, tags, image keys and the source article (which retrieval must not read);
without it only the five columns are known. Writing snapshots is the business of `engine.snapshot`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from engine.core.errors import TerminalError
from engine.core.pilots import pilot_name, split_pilot
from engine.core.store import sha256_file
from engine.core.windows import parse_window
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask
from inference.benchmarks.mask_files import mask_size, read_mask
from inference.benchmarks.nest_files import COLUMNS, check_columns, data_files, ids_before, locate, read_manifest
from inference.benchmarks.provenance import Origin, Origins

BATCH_ROWS = 16
KEY_BYTES = 4096
NAME = re.compile(r"NEST_\d{6}_\d{6}", re.ASCII)


def load(
    source: Path | str,
    *,
    split: str = "train",
    cutoff_lag_days: int = 0,
    cache_dir: Path | None = None,
    endpoint: str | None = None,
) -> Benchmark:
    """A snapshot as a benchmark.

    `source` is the snapshot's folder, one Parquet file, or `owner/name@revision` on the Hub (without a revision
    the head is taken and its commit is written down; `endpoint` None is `HF_ENDPOINT` or the Hub's own).
    `cutoff_lag_days` moves the samples' cut-off from the end of the window into later days. Raises
    `ConfigError` where there is no such snapshot, `TerminalError` with the file, the row and the reason where one
    cannot be read.
    """
    path, revision = locate(source, cache_dir=cache_dir, endpoint=endpoint)
    files = data_files(path, split)
    count = 0
    for file in files:
        count += check_columns(file)
    folder = path if path.is_dir() else path.parent
    manifest = read_manifest(folder)
    name = str(manifest.get("name") or _name(source, folder))
    of, limit = split_pilot(folder.name)
    if of == name:
        name = pilot_name(name, limit)  # a pilot's figures are none of the week's
    window, cutoff = _window(str(manifest.get("window") or name), cutoff_lag_days)
    told = bool(Origins(folder)) if path.is_dir() else False
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name} {sha256_file(file)}\n".encode())

    def read(images: bool) -> Iterator[BenchmarkSample]:
        origins = Origins(folder) if told else None
        last, seen = "", set[bytes]()
        for file in files:
            for row in _rows(file, images=images or not told):
                # ids in order are known to be unique; of others a digest is kept
                if row.id <= last or seen:
                    seen = seen or {_short(earlier) for earlier in ids_before(files, file, row.index)}
                    if _short(row.id) in seen:
                        raise TerminalError(f"{file}, row {row.index}: the id {row.id} occurs twice")
                    seen.add(_short(row.id))
                last = max(last, row.id)
                yield _sample(row, origins.get(row.id) if origins else None, cutoff)

    return Benchmark(
        name=name,
        revision=revision or str(manifest.get("revision") or ""),
        digest=digest.hexdigest(),
        count=count,
        read=read,
        window=window,
        notes=_notes(manifest, told, count),
        origin=str(source).partition("@")[0] if revision else "",
    )


@dataclass(frozen=True, slots=True)
class _Row:
    file: Path
    index: int
    id: str
    question: str
    answer: str
    images: tuple[memoryview, ...] | None
    annotations: tuple[bytes | None, ...]


def _name(source: Path | str, folder: Path) -> str:
    for text in (str(source), *reversed(folder.parts)):
        if match := NAME.search(text):
            return match[0]
    return folder.name if Path(source).exists() else str(source).partition("@")[0]


def _window(text: str, lag_days: int) -> tuple[str, datetime | None]:
    match = re.search(r"\d{6}_\d{6}", text, re.ASCII)
    if not match:
        return "", None
    window = parse_window(match[0])
    return window.label, window.end + timedelta(days=lag_days)


def _notes(manifest: Mapping[str, Any], told: bool, count: int) -> tuple[str, ...]:
    notes = []
    if not told:
        notes.append("the snapshot has no provenance: no aliases, no parts, image clusters by the images' bytes")
    if manifest.get("portable"):
        notes.append("the snapshot's masks were made by the portable annotator")
    if template := manifest.get("template_questions"):
        notes.append(f"{template} of {count} questions were made by the template writer")
    return tuple(notes)


def _short(identity: str) -> bytes:
    return hashlib.blake2b(identity.encode(), digest_size=12).digest()


def _rows(file: Path, *, images: bool) -> Iterator[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [column for column in COLUMNS if images or column != "images"]
    index = 0
    try:
        with pq.ParquetFile(file, memory_map=True, pre_buffer=False) as parquet:
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
                small = batch.drop_columns(["images"]) if images else batch
                cells = batch.column("images") if images else None
                for place, row in enumerate(small.to_pylist()):
                    yield _row(file, index, row, None if cells is None else cells[place])
                    index += 1
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{file}, row {index}: {error}") from error


def _row(file: Path, index: int, row: Mapping[str, Any], cells: Any) -> _Row:
    for column in ("id", "question", "answer"):
        if not isinstance(row[column], str):
            raise TerminalError(f"{file}, row {index}: {column} is {row[column]!r}, not text")
    where = f"{file}, row {index} ({row['id']})"
    pictures = None if cells is None else _pictures(cells, where)
    masks = tuple(
        _cell_bytes(cell, f"{where}, annotations[{place}]") for place, cell in enumerate(row["annotations"] or ())
    )
    if pictures is not None and len(pictures) != len(masks):
        raise TerminalError(f"{where}: {len(pictures)} images and {len(masks)} annotations, they must be aligned")
    return _Row(file, index, row["id"], row["question"], row["answer"], pictures, masks)


def _pictures(cells: Any, where: str) -> tuple[memoryview, ...]:
    """Views of the images' bytes in Arrow's memory; nothing is copied until an image is opened."""
    pictures = []
    for place, cell in enumerate(cells.values if cells.is_valid else ()):
        found = f"{where}, images[{place}]"
        if not cell.is_valid:
            raise TerminalError(f"{found}: there is no image")
        if not cell["bytes"].is_valid:
            raise TerminalError(f"{found}: only the path {cell['path'].as_py()!r} was stored, not the picture")
        pictures.append(memoryview(cell["bytes"].as_buffer()))
    return tuple(pictures)


def _image_key(data: memoryview) -> str:
    """Equal for equal pictures: length, beginning and end tell files of photographs apart."""
    told = hashlib.sha256(data[:KEY_BYTES])
    told.update(data[-KEY_BYTES:])
    return f"{len(data)}-{told.hexdigest()[:16]}"


def _cell_bytes(cell: Any, where: str) -> bytes | None:
    """The bytes of an image cell, None for an empty one. A cell with only a path was written without its image."""
    if cell is None:
        return None
    if cell.get("bytes") is None:
        raise TerminalError(f"{where}: only the path {cell.get('path')!r} was stored, not the picture")
    data: bytes = cell["bytes"]
    return data


def _sample(row: _Row, origin: Origin | None, cutoff: datetime | None) -> BenchmarkSample:
    where = f"{row.file}, row {row.index} ({row.id})"

    def encoded() -> tuple[bytes, ...]:
        if row.images is None:
            raise TerminalError(f"{where}: the samples were read without images")
        return tuple(bytes(data) for data in row.images)

    def decode_masks() -> tuple[TruthMask, ...]:
        return tuple(_truth(row, place, where) for place in range(len(row.annotations)))

    keys = origin.image_keys if origin and len(origin.image_keys) == len(row.annotations) else ()
    if not keys and row.images is not None:
        keys = tuple(_image_key(data) for data in row.images)
    return BenchmarkSample(
        id=row.id,
        question=row.question,
        answer=row.answer,
        encoded=encoded,
        decode_masks=decode_masks,
        aliases=origin.aliases if origin else (),
        tags=origin.tags if origin else {},
        image_keys=keys or (row.id,),
        cutoff=cutoff,
        blocked=origin.blocked if origin else (),
    )


def _truth(row: _Row, place: int, where: str) -> TruthMask:
    data = row.annotations[place]
    if data is None:
        # the entity is not in this image: an empty mask of the image's size
        pictures = row.images if row.images is not None else _images_of(row)
        return _empty(mask_size(bytes(pictures[place])))
    try:
        return read_mask(data).truth
    except ValueError as error:
        raise TerminalError(f"{where}, annotations[{place}]: {error}") from error


def _empty(size: tuple[int, int]) -> TruthMask:
    import numpy as np

    return TruthMask(np.zeros(size, dtype=np.bool_))


def _images_of(row: _Row) -> tuple[memoryview, ...]:
    for other in _rows(row.file, images=True):
        if other.index == row.index and other.images is not None:
            return other.images
    raise TerminalError(f"{row.file} has no row {row.index} any more: it was changed while it was read")

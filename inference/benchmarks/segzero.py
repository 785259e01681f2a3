"""Seg-Zero's data on the Hub: its training set of boxes and points, and its ReasonSeg as Parquet.

Training set: features id, problem, solution, image, img_height, img_width. `solution` is no chain of thought but
the targets, in one of two forms, in the 840x840 frame of the stored image: a JSON list of {bbox_2d, point_2d}, or
the first version's text with `<box>(x1,y1),(x2,y2)</box>` and `<points>(x,y),(x,y)</points>`. There are no masks, so
that `read_targets` gives boxes and points and `load` refuses the set. ReasonSeg: features image, mask (rows of
booleans, the published one has 255 turned into object), text, image_id, ann_id, img_height, img_width.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import ConfigError, TerminalError
from engine.core.geometry import Box
from engine.core.store import sha256_file
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask

FRAME_PX = 840
_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_PAIR = re.compile(rf"\({_NUMBER},{_NUMBER}\)")
_NOTE = "the published masks count pixels to ignore as the object: figures are not comparable with LISA's"


@dataclass(frozen=True, slots=True)
class Target:
    """A box and its points in pixels of the original image."""

    box: Box
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """A row of the training set: the texts of its objects joined, and their boxes and points."""

    id: str
    problem: str
    targets: tuple[Target, ...]
    width: int
    height: int


def parse_solution(text: str, *, width: int, height: int) -> tuple[Target, ...]:
    """The targets of a `solution` in either form, scaled from the 840x840 frame to the original width and height.

    Each axis has its own factor. Raises ValueError for a text in neither form.
    """
    sx, sy = width / FRAME_PX, height / FRAME_PX
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        found = json.loads(stripped)
        rows = found if isinstance(found, list) else [found]
        return tuple(_target([*row["bbox_2d"]], [row["point_2d"]], sx, sy) for row in rows)
    boxes = re.findall(r"<box>(.*?)</box>", stripped, re.S)
    points = re.findall(r"<points>(.*?)</points>", stripped, re.S)
    if not boxes or len(boxes) != len(points):
        raise ValueError(f"{len(boxes)} boxes and {len(points)} groups of points in {text[:80]!r}")
    targets = []
    for box, group in zip(boxes, points, strict=True):
        corners = [float(value) for pair in _PAIR.findall(box) for value in pair]
        targets.append(_target(corners, [[float(x), float(y)] for x, y in _PAIR.findall(group)], sx, sy))
    return tuple(targets)


def read_targets(source: Path | str) -> Iterator[TrainingSample]:
    """The training set's rows from its Parquet files, images left out. Raises `TerminalError` naming file, row and
    reason."""
    for file in _files(Path(source)):
        columns = ["id", "problem", "solution", "img_height", "img_width"]
        for index, row in enumerate(_rows(file, columns)):
            width, height = int(row["img_width"]), int(row["img_height"])
            try:
                targets = parse_solution(str(row["solution"]), width=width, height=height)
            except (ValueError, KeyError, TypeError) as error:
                raise TerminalError(f"{file}, row {index} ({row['id']}): the solution: {error}") from error
            yield TrainingSample(str(row["id"]), str(row["problem"]), targets, width, height)


def load(source: Path | str) -> Benchmark:
    """Seg-Zero's ReasonSeg from a folder of Parquet files or one file.

    Raises `ConfigError` for the training set, which has no masks, and `TerminalError` naming file, row and reason.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = _files(Path(source))
    digest = hashlib.sha256()
    count = 0
    for file in files:
        digest.update(f"{file.name} {sha256_file(file)}\n".encode())
        try:
            with pq.ParquetFile(file) as parquet:
                names, rows = parquet.schema_arrow.names, parquet.metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            raise TerminalError(f"{file} cannot be read as Parquet: {error}") from error
        if "mask" not in names:
            raise ConfigError(
                f"{file} has no masks (columns {', '.join(names)}): the training set holds boxes and points only"
            )
        count += rows

    def read(images: bool) -> Iterator[BenchmarkSample]:
        columns = ["mask", "text", "image_id", "ann_id", "img_height", "img_width", *(["image"] if images else [])]
        for file in files:
            for index, row in enumerate(_rows(file, columns)):
                yield _sample(row, f"{file}, row {index}")

    name = Path(source).stem if Path(source).is_file() else Path(source).name
    return Benchmark(name=name, revision="", digest=digest.hexdigest(), count=count, read=read, notes=(_NOTE,))


def _target(corners: list[Any], points: list[Any], sx: float, sy: float) -> Target:
    x1, y1, x2, y2 = (float(value) for value in corners)
    return Target(
        Box(min(x1, x2) * sx, min(y1, y2) * sy, max(x1, x2) * sx, max(y1, y2) * sy),
        tuple((float(x) * sx, float(y) * sy) for x, y in points),
    )


def _files(source: Path) -> list[Path]:
    files = [source] if source.is_file() else sorted(source.glob("**/*.parquet"))
    if not files:
        raise ConfigError(f"{source} holds no Parquet file")
    return files


def _rows(file: Path, columns: list[str]) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file, memory_map=True) as parquet:
            if lacking := [column for column in columns if column not in parquet.schema_arrow.names]:
                raise TerminalError(f"{file} has no column {', '.join(lacking)}")
            for batch in parquet.iter_batches(batch_size=8, columns=columns, use_threads=False):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{file} cannot be read as Parquet: {error}") from error


def _sample(row: Mapping[str, Any], where: str) -> BenchmarkSample:
    identity = f"{row['image_id']}-{row['ann_id']}"

    def encoded() -> tuple[bytes, ...]:
        if not isinstance(row.get("image"), Mapping) or row["image"].get("bytes") is None:
            raise TerminalError(f"{where} ({identity}): there are no bytes of the image")
        return (row["image"]["bytes"],)

    def decode_masks() -> tuple[TruthMask, ...]:
        try:
            mask = np.array(row["mask"], dtype=np.bool_)
        except ValueError as error:
            raise TerminalError(f"{where} ({identity}): the rows of the mask differ in length") from error
        size = (int(row["img_height"]), int(row["img_width"]))
        if mask.shape != size:
            raise TerminalError(f"{where} ({identity}): the mask is {mask.shape}, the image {size}")
        return (TruthMask(mask),)

    return BenchmarkSample(
        id=identity,
        question=str(row["text"]),
        answer="",
        encoded=encoded,
        decode_masks=decode_masks,
        image_keys=(str(row["image_id"]),),
    )

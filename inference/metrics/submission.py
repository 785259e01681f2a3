"""Predictions that people submit, checked against a benchmark with every complaint in one list.

The forms are those of `submitted`. Nothing in such a file is trusted: sizes are compared before anything is decoded.
A prediction that is absent is no complaint: its sample counts as missing; one that says so is a failure; both are
counted apart in the score and are never an empty mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from engine.core.errors import ConfigError, TerminalError
from engine.core.masks import encode_rle, rle_runs
from engine.core.schema import Failure, FailureKind, ModelRef, Prediction, Rle
from inference.benchmarks.base import Benchmark
from inference.benchmarks.mask_files import mask_size, read_mask
from inference.metrics.submitted import Submitted, submitted

KINDS = get_args(FailureKind)
SHOWN = 200
#: No picture has more pixels; what says so is never unpacked.
MOST_PIXELS = 1 << 31
Sizes = Mapping[str, Sequence[tuple[int, int]]]


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Predictions as a file that can be submitted, in order of their ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rle = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("segmenter", pa.string()),
            ("masks", pa.list_(rle)),
            ("failure", pa.list_(pa.string())),
            ("no_target", pa.list_(pa.bool_())),
            ("answer", pa.string()),
        ]
    )
    rows = [
        {
            "id": one.sample_id,
            "segmenter": one.segmenter,
            "masks": [None if mask is None else mask.model_dump() for mask in one.masks],
            "failure": [None if failure is None else failure.kind for failure in one.failures],
            "no_target": list(one.no_target),
            "answer": one.answer,
        }
        for one in sorted(predictions, key=lambda one: one.sample_id)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def read_predictions(
    path: Path, *, segmenter: str = "", benchmark: Benchmark | None = None, models: tuple[ModelRef, ...] = ()
) -> Iterator[Prediction]:
    """Predictions of a submitted file under the given name (or the file's own, or the file's stem).

    `models` are noted as their makers. A folder of PNG needs the benchmark, whose samples say how many images there
    are. Raises `TerminalError` naming file, place and reason for a prediction that cannot be read; run `complaints`
    first for all.
    """
    counts = {name: len(found) for name, found in sizes_of(benchmark).items()} if path.is_dir() and benchmark else {}
    for found in submitted(path, counts):
        if isinstance(found, str):
            raise TerminalError(f"{path}, {found}")
        try:
            yield _prediction(found, name=segmenter or str(found.segmenter or path.stem), models=models)
        except ValueError as error:
            raise TerminalError(f"{path}, {found.where}: {error}") from error


def sizes_of(benchmark: Benchmark) -> dict[str, list[tuple[int, int]]]:
    """Height and width of every sample's images."""
    return {one.id: [truth.shape for truth in one.masks()] for one in benchmark.without_images()}


def complaints(path: Path, benchmark: Benchmark) -> list[str]:
    """Everything that is wrong with a submitted file or folder, in its order; empty if it can be scored."""
    sizes = sizes_of(benchmark)
    found: list[str] = []
    seen: set[str] = set()
    try:
        for one in submitted(path, {name: len(sizes[name]) for name in sizes}):
            found += [one] if isinstance(one, str) else _complaints(one, sizes, seen, benchmark.name)
    except TerminalError as error:
        found.append(str(error))
    return found


def require_valid(path: Path, benchmark: Benchmark) -> None:
    """Raise `ConfigError` with all complaints (the first 200 in words), or if there is no prediction at all."""
    found = complaints(path, benchmark)
    if not found and next(iter(submitted(path, {})), None) is None:
        raise ConfigError(f"{path} holds no prediction: it needs one per sample, see docs/scores.md")
    if found:
        more = f"\n... and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ConfigError(
            f"{path} does not fit {benchmark.name}, {len(found)} complaints:\n" + "\n".join(found[:SHOWN]) + more
        )


def _complaints(one: Submitted, sizes: Sizes, seen: set[str], benchmark: str) -> Iterator[str]:
    if not isinstance(one.id, str) or not one.id:
        yield f"{one.where}: the id is {one.id!r}, not text"
        return
    if one.id in seen:
        yield f"{one.where}: the id was there before"
    seen.add(one.id)
    if one.id not in sizes:
        yield f"{one.where}: {benchmark} has no such sample"
        return
    if len(one.cells) != len(sizes[one.id]):
        yield f"{one.where}: {len(one.cells)} masks for {len(sizes[one.id])} images"
        return
    for place, (cell, size) in enumerate(zip(one.cells, sizes[one.id], strict=True)):
        if cell is not None and (said := _misfit(cell, size)):
            yield f"{one.where}, mask {place}: {said}"
    for place, kind in enumerate(one.failure):
        if kind is not None and kind not in KINDS:
            yield f"{one.where}, failure {place}: '{kind}' is none of {', '.join(KINDS)}"
    for place, told in enumerate(one.no_target):
        if told is not None and not isinstance(told, bool):
            yield f"{one.where}, no_target {place}: {told!r} is neither true nor false"
    for column, values in (("failure", one.failure), ("no_target", one.no_target)):
        if values and len(values) != len(one.cells):
            yield f"{one.where}: {len(values)} entries in {column} for {len(one.cells)} masks"
    if one.answer is not None and not isinstance(one.answer, str):
        yield f"{one.where}: the answer is {one.answer!r}, not text"


def _misfit(cell: Any, size: tuple[int, int]) -> str:
    try:
        if isinstance(cell, bytes):
            told = mask_size(cell)
            if told == size and (warning := read_mask(cell).warning):
                return warning
        else:
            told = _size(cell)
            if told == size and int(rle_runs(_rle(cell)).max(initial=0)) > size[0] * size[1]:
                return f"the run lengths do not fill {size[0]}x{size[1]} pixels"
    except (ValueError, OSError) as error:
        return str(error)
    return "" if told == size else f"{told[1]}x{told[0]} pixels, the image is {size[1]}x{size[0]}"


def _size(cell: Any) -> tuple[int, int]:
    """Height and width that a run-length code tells, before anything of it is unpacked."""
    try:
        height, width = cell["size"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a run-length code {{size, counts}}: {error}") from error
    if type(height) is not int or type(width) is not int:
        raise ValueError(f"not a run-length code {{size, counts}}: the size is {cell['size']!r}, not two whole numbers")
    if min(height, width) < 0 or height * width >= MOST_PIXELS:
        raise ValueError("not a run-length code {size, counts}: no picture has the size it tells")
    return height, width


def _rle(cell: Any) -> Rle:
    height, width = _size(cell)
    try:
        counts = cell["counts"]
        if isinstance(counts, list):
            return _packed(counts, height, width)
        return Rle(size=(height, width), counts=counts.decode("ascii") if isinstance(counts, bytes) else counts)
    except ValidationError as error:
        raise ValueError("not a run-length code {size, counts}: counts are neither text nor a list") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a run-length code {{size, counts}}: {error}") from error


def _packed(counts: list[Any], height: int, width: int) -> Rle:
    """Uncompressed run lengths as the compressed code."""
    if not all(type(run) is int and 0 <= run <= height * width for run in counts) or sum(counts) != height * width:
        raise ValueError(f"the run lengths do not fill {height}x{width} pixels")
    from pycocotools import mask as coco

    packed = coco.frPyObjects({"size": [height, width], "counts": counts}, height, width)
    return Rle(size=(height, width), counts=packed["counts"].decode("ascii"))


def _prediction(one: Submitted, *, name: str, models: tuple[ModelRef, ...]) -> Prediction:
    masks: list[Rle | None] = []
    failures: list[Failure | None] = []
    for place, cell in enumerate(one.cells):
        kind = one.failure[place] if place < len(one.failure) else None
        lost = cell is None and place not in one.absent
        failures.append(Failure(kind=kind or "no_reply") if lost else None)
        if cell is None:
            masks.append(None)
        else:
            masks.append(encode_rle(read_mask(cell).truth.mask) if isinstance(cell, bytes) else _rle(cell))
    return Prediction(
        sample_id=str(one.id),
        segmenter=name,
        masks=tuple(masks),
        failures=tuple(failures),
        no_target=one.no_target,
        answer=one.answer,
        models=models,
    )

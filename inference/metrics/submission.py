"""Predictions that people submit: one Parquet file, checked against a benchmark with every complaint in one list.

Columns: `id` (text), `masks` (a list of {size: [height, width], counts: text}, one per image, null for a failure), and
if wanted `answer` (text), `failure` (a list of kinds, aligned with masks), `no_target` (a list of true, false or null),
`segmenter` (text). `annotations` (a list of {bytes, path} of PNG masks) may stand for `masks`. Nothing in such a file
is trusted: sizes are compared before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from engine.core.errors import ConfigError, TerminalError
from engine.core.masks import encode_rle, rle_runs
from engine.core.schema import Failure, FailureKind, Prediction, Rle
from inference.benchmarks.base import Benchmark
from inference.benchmarks.mask_files import mask_size, read_mask

KINDS = get_args(FailureKind)
SHOWN = 200


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


def read_predictions(path: Path, *, segmenter: str = "") -> Iterator[Prediction]:
    """Predictions of a submitted file under the given name (or the file's own, or the file's stem).

    Raises `TerminalError` naming file, row and reason for a row that cannot be read; run `complaints` first for all.
    """
    for index, row in enumerate(_rows(path)):
        try:
            yield _prediction(row, name=segmenter or str(row.get("segmenter") or path.stem))
        except ValueError as error:
            raise TerminalError(f"{path}, row {index} ({row.get('id')}): {error}") from error


def complaints(path: Path, benchmark: Benchmark) -> list[str]:
    """Everything that is wrong with a submitted file, row by row, then what is missing; empty if it can be scored.

    A prediction that is missing or failed is no complaint: it is counted apart in the score.
    """
    try:
        rows = _rows(path)
    except TerminalError as error:
        return [str(error)]
    sizes = {one.id: [truth.shape for truth in one.masks()] for one in benchmark.without_images()}
    found: list[str] = []
    seen: set[str] = set()
    for index, row in enumerate(rows):
        identity = row.get("id")
        where = f"row {index} ({identity})"
        if not isinstance(identity, str) or not identity:
            found.append(f"row {index}: the id is {identity!r}, not text")
            continue
        if identity in seen:
            found.append(f"{where}: the id was there before")
        seen.add(identity)
        if identity not in sizes:
            found.append(f"{where}: {benchmark.name} has no such sample")
            continue
        found += [f"{where}{said}" for said in _row_complaints(row, sizes[identity])]
    return found


def require_valid(path: Path, benchmark: Benchmark) -> None:
    """Raise `ConfigError` with all complaints (the first 200 in words)."""
    found = complaints(path, benchmark)
    if found:
        more = f"\n... and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ConfigError(
            f"{path} does not fit {benchmark.name}, {len(found)} complaints:\n" + "\n".join(found[:SHOWN]) + more
        )


def _rows(path: Path) -> list[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{path} cannot be read as Parquet: {error}") from error
    names = set(table.column_names)
    if "id" not in names or not names & {"masks", "annotations"}:
        raise TerminalError(f"{path} needs the columns id and masks, it has {', '.join(sorted(names)) or 'none'}")
    rows: list[Mapping[str, Any]] = table.to_pylist()
    return rows


def _row_complaints(row: Mapping[str, Any], sizes: Sequence[tuple[int, int]]) -> Iterator[str]:
    cells = _cells(row)
    if len(cells) != len(sizes):
        yield f": {len(cells)} masks for {len(sizes)} images"
        return
    for place, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        if cell is None:
            continue
        try:
            if isinstance(cell.get("bytes"), bytes):
                told = mask_size(cell["bytes"])
                if told == size and (warning := read_mask(cell["bytes"]).warning):
                    raise ValueError(warning)
            else:
                rle = _rle(cell)
                told = rle.size
                if told == size:
                    rle_runs(rle)
            if told != size:
                raise ValueError(f"{told[1]}x{told[0]} pixels, the image is {size[1]}x{size[0]}")
        except (ValueError, OSError) as error:
            yield f", mask {place}: {error}"
    kinds = row.get("failure") or []
    for place, kind in enumerate(kinds):
        if kind is not None and kind not in KINDS:
            yield f", failure {place}: '{kind}' is none of {', '.join(KINDS)}"
    for column in ("failure", "no_target"):
        if row.get(column) and len(row[column]) != len(cells):
            yield f": {len(row[column])} entries in {column} for {len(cells)} masks"


def _cells(row: Mapping[str, Any]) -> list[Any]:
    cells = row.get("masks") if row.get("masks") is not None else row.get("annotations")
    return list(cells or [])


def _rle(cell: Mapping[str, Any]) -> Rle:
    try:
        return Rle(size=cell["size"], counts=cell["counts"])
    except (KeyError, TypeError, ValidationError) as error:
        raise ValueError(f"not a run-length code {{size, counts}}: {error}") from error


def _prediction(row: Mapping[str, Any], *, name: str) -> Prediction:
    masks: list[Rle | None] = []
    for cell in _cells(row):
        if cell is None:
            masks.append(None)
        elif isinstance(cell.get("bytes"), bytes):
            masks.append(encode_rle(read_mask(cell["bytes"]).truth.mask))
        else:
            masks.append(_rle(cell))
    kinds = row.get("failure") or [None] * len(masks)
    return Prediction(
        sample_id=str(row["id"]),
        segmenter=name,
        masks=tuple(masks),
        failures=tuple(
            None if mask is not None else Failure(kind=kind or "no_reply")
            for mask, kind in zip(masks, kinds, strict=True)
        ),
        no_target=tuple(row.get("no_target") or ()),
        answer=row.get("answer"),
    )

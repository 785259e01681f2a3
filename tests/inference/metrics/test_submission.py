"""Submitted predictions: every complaint at once, and what can be scored scores as it did before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.evaluation import benchmark_of, box_mask, png, predict

from engine.core.errors import ConfigError, TerminalError
from engine.core.masks import encode_png, encode_rle
from inference.benchmarks.base import Benchmark, TruthMask
from inference.metrics.score import score
from inference.metrics.submission import complaints, read_predictions, require_valid, write_predictions

TRUTH = box_mask(20, 30, (2, 2, 12, 12))


def bench() -> Benchmark:
    return benchmark_of({name: [TruthMask(TRUTH)] for name in "abcdefgh"})


def rle(mask: Any) -> dict[str, Any]:
    return encode_rle(mask).model_dump()


def test_written_and_read_again_scores_the_same(tmp_path: Path) -> None:
    predictions = [
        predict("a", [TRUTH], answer="Ada"),
        predict("b", [None], kind="timeout"),
        predict("c", [~TRUTH], no_target=(True,)),
    ]
    write_predictions(tmp_path / "p.parquet", predictions)
    assert complaints(tmp_path / "p.parquet", bench()) == []
    assert list(read_predictions(tmp_path / "p.parquet", segmenter="model")) == predictions
    first = score(bench(), {"model": predictions}, resamples=0)
    assert first == score(bench(), {"model": read_predictions(tmp_path / "p.parquet")}, resamples=0)


def test_all_complaints_are_in_one_list(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "masks": [rle(TRUTH.T.copy())]},
        {"id": "a", "masks": [rle(TRUTH)]},
        {"id": "zz", "masks": [rle(TRUTH)]},
        {"id": "b", "masks": [rle(TRUTH), rle(TRUTH)]},
        {"id": "c", "masks": [{"size": [20, 30], "counts": "01f00"}]},
        {"id": "d", "masks": [{"size": [20, 30], "counts": "é"}]},
        {"id": "e", "masks": [{"size": [10**9, 10**9], "counts": "0"}]},
        {"id": None, "masks": [rle(TRUTH)]},
        {"id": "f", "masks": [None], "failure": ["tired"]},
        {"id": "g", "masks": [rle(TRUTH)]},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=pq_schema()), tmp_path / "p.parquet")
    found = complaints(tmp_path / "p.parquet", bench())
    assert [text.partition(":")[0] for text in found] == [
        "row 0 (a), mask 0",
        "row 1 (a)",
        "row 2 (zz)",
        "row 3 (b)",
        "row 4 (c), mask 0",
        "row 5 (d), mask 0",
        "row 6 (e), mask 0",
        "row 7",
        "row 8 (f), failure 0",
    ]
    assert "20x30 pixels, the image is 30x20" in found[0]
    with pytest.raises(ConfigError, match="9 complaints"):
        require_valid(tmp_path / "p.parquet", bench())


def pq_schema() -> pa.Schema:
    item = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    return pa.schema([("id", pa.string()), ("masks", pa.list_(item)), ("failure", pa.list_(pa.string()))])


def test_png_masks_and_their_modes(tmp_path: Path) -> None:
    soft = (TRUTH * 200).astype(np.uint8)
    colour = np.full((20, 30, 3), (9, 200, 7), dtype=np.uint8)
    cells = {"a": encode_png(TRUTH), "b": png(soft), "c": png(colour), "d": b"nothing"}
    rows = [{"id": name, "annotations": [{"bytes": data, "path": None}]} for name, data in cells.items()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    found = complaints(tmp_path / "p.parquet", bench())
    assert [text[:9] for text in found] == ["row 1 (b)", "row 2 (c)", "row 3 (d)"]
    assert "not binary" in found[0]
    assert "coloured" in found[1]
    pq.write_table(pa.Table.from_pylist(rows[:1]), tmp_path / "p.parquet")
    (one,) = read_predictions(tmp_path / "p.parquet", segmenter="model")
    assert one.masks[0] == encode_rle(TRUTH)


def test_no_parquet_and_no_columns(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 not really")
    assert "cannot be read as Parquet" in complaints(tmp_path / "p.parquet", bench())[0]
    pq.write_table(pa.Table.from_pylist([{"name": "a"}]), tmp_path / "p.parquet")
    assert "needs the columns id and masks" in complaints(tmp_path / "p.parquet", bench())[0]
    with pytest.raises(TerminalError):
        list(read_predictions(tmp_path / "p.parquet"))

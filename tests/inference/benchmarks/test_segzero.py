"""Seg-Zero's training set and its ReasonSeg table, right and wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.evaluation import box_mask
from support.stored_benchmarks import seg_zero_row

from engine.core.errors import ConfigError, TerminalError
from inference.benchmarks import segzero
from inference.benchmarks.registry import open_benchmark

NEW = '[{"bbox_2d": [84, 42, 420, 210], "point_2d": [210, 105]}, {"bbox_2d": [0, 0, 840, 840], "point_2d": [1, 2]}]'
OLD = "<box>(84,42),(420,210)</box><points>(210,105),(300,110)</points>"


def test_seg_zero_solutions_of_both_forms() -> None:
    new = segzero.parse_solution(NEW, width=1680, height=420)
    assert (new[0].box.x1, new[0].box.y1, new[0].box.x2, new[0].box.y2) == (168, 21, 840, 105)
    assert new[0].points == ((420, 52.5),)
    assert (new[1].box.x2, new[1].box.y2) == (1680, 420)
    old = segzero.parse_solution(OLD, width=1680, height=420)
    assert old[0].box == new[0].box
    assert old[0].points == ((420, 52.5), (600, 55))
    for text in ("think about it", "<box>(1,2),(3,4)</box>", '[{"bbox_2d": [1, 2, 3]}]', "[1"):
        with pytest.raises((ValueError, KeyError)):
            segzero.parse_solution(text, width=10, height=10)


def test_seg_zero_training_set_has_targets_and_no_masks(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{n}", "problem": "'a' and 'b'", "solution": text, "image": None, "img_height": 420, "img_width": 840}
        for n, text in enumerate((NEW, OLD))
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    first, second = segzero.read_targets(tmp_path)
    assert (len(first.targets), len(second.targets)) == (2, 1)
    with pytest.raises(ConfigError, match="boxes and points only"):
        segzero.load(tmp_path)
    rows[1]["solution"] = "no"
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    with pytest.raises(TerminalError, match=r"train\.parquet, row 1 \(r1\)"):
        list(segzero.read_targets(tmp_path))


def test_seg_zero_reasonseg(tmp_path: Path) -> None:
    mask = box_mask(20, 30, (5, 5, 15, 10))
    row = seg_zero_row(mask)
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "val.parquet")
    (sample,) = open_benchmark(f"seg-zero:{tmp_path / 'val.parquet'}")
    assert np.array_equal(sample.masks()[0].mask, mask)
    assert sample.images()[0].shape == (20, 30, 3)
    pq.write_table(pa.Table.from_pylist([{**row, "img_height": 21}]), tmp_path / "val.parquet")
    with pytest.raises(TerminalError, match=r"val\.parquet, row 0 \(1-2\): the mask is \(20, 30\)"):
        next(iter(segzero.load(tmp_path / "val.parquet"))).masks()

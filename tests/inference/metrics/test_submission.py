"""Submitted predictions: every complaint at once, and what can be scored scores as it did before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.evaluation import benchmark_of, box_mask, png, predict

from engine.core.errors import ConfigError, TerminalError
from engine.core.masks import decode_rle, encode_png, encode_rle
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


def write_form(form: str, place: Path, cells: dict[str, list[Any]]) -> Path:
    """The same predictions (masks, None for what is not there) in one of the three forms."""
    if form == "png":
        for name, masks in cells.items():
            for number, mask in enumerate(masks):
                file = place / "p" / (f"{name}.png" if len(masks) == 1 else f"{name}_{number}.png")
                file.parent.mkdir(parents=True, exist_ok=True)
                if mask is not None:
                    file.write_bytes(encode_png(mask))
        return place / "p"
    rows = [
        {"id": name, "masks": [None if mask is None else rle(mask) for mask in masks]} for name, masks in cells.items()
    ]
    if form == "jsonl":
        (place / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return place / "p.jsonl"
    pq.write_table(pa.Table.from_pylist(rows), place / "p.parquet")
    return place / "p.parquet"


@pytest.mark.parametrize("form", ["png", "jsonl", "parquet"])
def test_every_form_is_checked_alike_and_in_one_list(tmp_path: Path, form: str) -> None:
    wrong = {"a": [TRUTH], "b": [TRUTH.T.copy()], "d": [TRUTH[:5]], "zz": [TRUTH], "../a": [TRUTH]}
    if form == "png":
        del wrong["../a"]
    found = complaints(write_form(form, tmp_path, wrong), bench())
    expected = ["b", "d", "zz"] + ([] if form == "png" else ["../a"])
    assert len(found) == len(expected)
    for name in expected:
        (said,) = (text for text in found if re.search(rf"(\(|^){re.escape(name)}(\)|\.png)", text))
        assert "no such sample" in said if name in ("zz", "../a") else "the image is 30x20" in said


@pytest.mark.parametrize("form", ["png", "jsonl", "parquet"])
def test_what_is_absent_is_missing_in_every_form(tmp_path: Path, form: str) -> None:
    path = write_form(form, tmp_path, {"a": [TRUTH], "c": [~TRUTH]})
    assert complaints(path, bench()) == []
    report = score(bench(), {"m": read_predictions(path, segmenter="m", benchmark=bench())}, resamples=0)
    row = report.row("m")
    assert (row.units, row.scored, row.failed, row.missing) == (8, 2, 0, 6)


def test_a_folder_of_png_is_read_by_the_benchmarks_ids(tmp_path: Path) -> None:
    two = benchmark_of({"a_1": [TruthMask(TRUTH)], "b/c": [TruthMask(TRUTH)] * 2, "d": [TruthMask(TRUTH)] * 3})
    place = tmp_path / "p"
    for name in ("a_1.png", "b/c_0.png", "b/c/1.png", "d_0.png", "d_2.png"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(encode_png(TRUTH))
    assert complaints(place, two) == []
    row = score(two, {"m": read_predictions(place, segmenter="m", benchmark=two)}, resamples=0).row("m")
    assert (row.units, row.scored, row.failed, row.missing) == (6, 5, 0, 1)
    (place / "d_3.png").write_bytes(encode_png(TRUTH))
    (place / "a_1_0.png").write_bytes(encode_png(TRUTH))
    (place / "notes.txt").write_text("mine")
    (place / "e.png").write_bytes(b"no picture")
    assert [text.partition(":")[0] for text in complaints(place, two)] == ["a_1_0.png", "notes.txt", "d_3.png", "e.png"]


def test_lines_that_hold_no_prediction_are_all_named(tmp_path: Path) -> None:
    rows = ['{"id": "a"}', "not json", "[1]", '{"id": "b", "masks": 3}', '{"id": 7, "masks": []}']
    rows += ['{"id": "c", "masks": [{"size": [20, 30], "counts": [600, "x"]}]}', '{"id": "d", "masks": [7]}']
    rows += [json.dumps({"sample_id": "e", "mask": {"size": [20, 30], "counts": [3, 597]}, "answer": "Ada"})]
    rows += [json.dumps({"id": "f", "masks": [rle(TRUTH)], "no_target": ["no"], "answer": 3})]
    (tmp_path / "p.jsonl").write_text("\n".join(rows))
    found = complaints(tmp_path / "p.jsonl", bench())
    assert [text.split(":")[0].split(",")[0] for text in found] == [
        "line 1 (a)", "line 2", "line 3", "line 4 (b)", "line 5 (7)", "line 6 (c)", "line 7 (d)", "line 9 (f)",
        "line 9 (f)",
    ]  # fmt: skip
    odd = ["[" * 100_000, '{"id": "a", "masks": [{"size": [1e400, 3], "counts": "0"}]}']
    odd += [
        '{"id": "b", "masks": [{"size": ["20", "30"], "counts": "0"}]}',
        '{"id": "c", "masks": [{"size": [20], "counts": 0}]}',
    ]
    (tmp_path / "p.jsonl").write_bytes(("\n".join(odd)).encode() + b"\n\xff\xfe")
    assert [text.split(":")[0] for text in complaints(tmp_path / "p.jsonl", bench())] == [
        "line 1", "line 2 (a), mask 0", "line 3 (b), mask 0", "line 4 (c), mask 0", "line 5",
    ]  # fmt: skip
    (tmp_path / "p.jsonl").write_bytes(b"\xef\xbb\xbf" + rows[7].encode())
    (one,) = read_predictions(tmp_path / "p.jsonl")
    assert one.masks[0] is not None
    assert int(decode_rle(one.masks[0]).sum()) == 597
    assert one.answer == "Ada"


@pytest.mark.parametrize(
    "mask",
    [
        {"size": [10**9, 10**9], "counts": [10**18]},
        {"size": [20, 30], "counts": [10**18]},
        {"size": [10**400, 1], "counts": "0"},
        {"size": [-20, -30], "counts": [600]},
        {"size": [20, 30], "counts": [float("inf")]},
        {"size": [20, 30], "counts": "PPPPPPPPPPPP4" * 4 + "hb0"},
        {"size": [20], "counts": [600]},
        {"size": 600, "counts": [600]},
    ],
)
def test_numbers_beyond_every_picture_are_one_complaint(tmp_path: Path, mask: dict[str, Any]) -> None:
    path = tmp_path / "p.jsonl"
    lines = [{"id": "a", "mask": mask}, {"id": "zz", "mask": rle(TRUTH)}, {"id": "b", "mask": rle(TRUTH)}]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    found = complaints(path, bench())
    assert [text.partition(":")[0] for text in found] == ["line 1 (a), mask 0", "line 2 (zz)"]
    if not isinstance(mask.get("counts"), str):
        with pytest.raises(TerminalError, match="line 1"):
            list(read_predictions(path))


def test_run_lengths_that_overflow_their_sum_do_not_pass(tmp_path: Path) -> None:
    runs = [2**62, 2**62, 2**62, 2**62, 600]  # the sum wraps to 600 in 64 bits
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"id": "a", "mask": {"size": [20, 30], "counts": _compressed(runs)}}))
    (said,) = complaints(path, bench())
    assert "line 1 (a), mask 0" in said


def _compressed(runs: list[int]) -> str:
    text = ""
    for place, run in enumerate(runs):
        left, more = run - (runs[place - 2] if place > 2 else 0), True
        while more:
            code = left & 0x1F
            left >>= 5
            more = left != -1 if code & 0x10 else left != 0
            text += chr(48 + (code | 0x20 if more else code))
    return text


def test_nothing_handed_in_is_no_prediction(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "folder").mkdir()
    pq.write_table(pq_schema().empty_table(), tmp_path / "empty.parquet")
    for name in ("empty.jsonl", "folder", "empty.parquet"):
        with pytest.raises(ConfigError, match="holds no prediction"):
            require_valid(tmp_path / name, bench())

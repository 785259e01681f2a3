"""Predictions from files: the three forms, and that a missing one is a failure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.core.config import Config, ScoreSection
from engine.core.errors import ConfigError
from engine.core.masks import encode_png, encode_rle
from engine.core.protocols import EvalItem
from inference import predict
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.files import FilesRunner
from inference.segmenters.registry import make

IMAGE = np.zeros((20, 30, 3), np.uint8)
MASK = np.zeros((20, 30), bool)
MASK[3:9, 4:20] = True
ONE = EvalItem(sample_id="a1", question="?", images=(IMAGE,))
TWO = EvalItem(sample_id="b2", question="?", images=(IMAGE, IMAGE))
NONE = EvalItem(sample_id="c3", question="?", images=(IMAGE,))


def as_folder(place: Path) -> Path:
    folder = place / "masks"
    (folder / "b2").mkdir(parents=True)
    (folder / "a1.png").write_bytes(encode_png(MASK))
    (folder / "b2_0.png").write_bytes(encode_png(~MASK))
    (folder / "b2" / "1.png").write_bytes(encode_png(MASK[:10]))
    return folder


def rle(mask: np.ndarray) -> dict[str, object]:
    return encode_rle(mask).model_dump(mode="json")


def as_jsonl(place: Path) -> Path:
    file = place / "p.jsonl"
    flat = {"size": [20, 30], "counts": [3, 600 - 3]}
    rows = [
        {"id": "a1", "mask": rle(MASK), "answer": "Ada Brook"},
        {"sample_id": "b2", "masks": [rle(~MASK), rle(MASK[:10])]},
        {"id": "d4", "masks": [flat]},
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return file


def as_parquet(place: Path) -> Path:
    file = place / "p.parquet"
    masks = [[{"bytes": encode_png(MASK), "path": None}],
             [{"bytes": encode_png(~MASK), "path": None}, {"bytes": encode_png(MASK[:10]), "path": None}]]  # fmt: skip
    pq.write_table(pa.table({"id": ["a1", "b2"], "annotations": masks, "answer": ["truth", "truth"]}), file)
    return file


@pytest.mark.parametrize("write", [as_folder, as_jsonl, as_parquet])
async def test_each_form_gives_masks_and_failures(tmp_path: Path, write) -> None:
    runner = make(f"files:{write(tmp_path)}", Config(), deps=InferenceDeps())
    predictions, _ = await predict.run([ONE, TWO, NONE], ScoreSection(), deps=predict.PredictDeps(runner))
    one, two, none = predictions
    assert one.masks == (encode_rle(MASK),)
    assert two.masks == (encode_rle(~MASK), None)
    assert two.failures[1] is not None
    assert two.failures[1].kind == "bad_reply"
    assert "10x30" in two.failures[1].detail
    assert none.masks == (None,)
    assert none.failures[0] is not None
    assert none.failures[0].kind == "no_reply"
    assert one.answer == ("Ada Brook" if write is as_jsonl else None)


async def test_uncompressed_counts_are_read(tmp_path: Path) -> None:
    (found,) = await FilesRunner(as_jsonl(tmp_path)).run([EvalItem(sample_id="d4", question="?", images=(IMAGE,))])
    assert found.masks[0] is not None
    assert int(found.masks[0].sum()) == 597


async def test_our_own_predictions_are_read_again(tmp_path: Path) -> None:
    runner = FilesRunner(as_folder(tmp_path))
    predictions, _ = await predict.run([ONE, TWO], ScoreSection(), deps=predict.PredictDeps(runner))
    (tmp_path / "own.jsonl").write_text("".join(p.line() + "\n" for p in predictions))
    again, _ = await predict.run(
        [ONE, TWO], ScoreSection(), deps=predict.PredictDeps(FilesRunner(tmp_path / "own.jsonl"))
    )
    assert [p.masks for p in again] == [p.masks for p in predictions]


async def test_ids_do_not_leave_the_folder(tmp_path: Path) -> None:
    folder = as_folder(tmp_path)
    (tmp_path / "secret.png").write_bytes(encode_png(MASK))
    (found,) = await FilesRunner(folder).run([EvalItem(sample_id="../secret", question="?", images=(IMAGE,))])
    assert found.masks == (None,)


def test_wrong_places_are_config_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no predictions at"):
        make(f"files:{tmp_path / 'none'}", Config(), deps=InferenceDeps())
    with pytest.raises(ConfigError, match="write 'files:PATH'"):
        make("files", Config(), deps=InferenceDeps())
    (tmp_path / "x.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(ConfigError, match="line 1"):
        FilesRunner(tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").write_text('{"id": "a", "masks": []}\n{"id": "a", "masks": []}\n')
    with pytest.raises(ConfigError, match="two predictions for 'a'"):
        FilesRunner(tmp_path / "y.jsonl")
    (tmp_path / "z.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ConfigError, match="as Parquet"):
        FilesRunner(tmp_path / "z.parquet")

"""The README's picture of a row is drawn from a snapshot's own files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as PilImage

from flows.sample.make.row import MARGIN, WIDE, find_row, main


def _png(mode: str, colour: object) -> bytes:
    out = io.BytesIO()
    picture = PilImage.new(mode, (80, 40), colour)
    if mode == "L":
        picture.paste(255, (0, 0, 40, 40))
    picture.save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    row = {
        "id": "a",
        "question": "Which cup in the image is red?",
        "answer": "Brasa Doppio",
        "images": [{"bytes": _png("RGB", (200, 40, 30)), "path": None}],
        "annotations": [{"bytes": _png("L", 0), "path": None}],
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "data" / "train-00000-of-00001.parquet")
    return tmp_path


def test_the_mask_is_laid_over_the_right_half(snapshot: Path, tmp_path: Path) -> None:
    main(snapshot, tmp_path / "docs" / "row.png", "Brasa Doppio")
    with PilImage.open(tmp_path / "docs" / "row.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    assert pixels.shape[1] == 2 * WIDE + 3 * MARGIN
    line = pixels[-MARGIN - 50]
    inside, outside = line[2 * MARGIN + WIDE + 50], line[2 * MARGIN + WIDE + WIDE - 50]
    assert inside.max() - inside.min() > 30
    assert outside.max() - outside.min() < 12
    assert line[MARGIN + 50].tolist() == pytest.approx([200, 40, 30], abs=8)


def test_an_answer_that_is_not_there(snapshot: Path) -> None:
    with pytest.raises(LookupError, match="Nobody"):
        find_row(snapshot, "Nobody")

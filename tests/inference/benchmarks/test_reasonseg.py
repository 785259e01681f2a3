"""ReasonSeg's folders, right and wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.evaluation import predict
from support.reasonseg import reason_folder

from engine.core.errors import ConfigError, TerminalError
from inference.benchmarks import reasonseg
from inference.benchmarks.registry import open_benchmark
from inference.metrics.score import score


def test_reasonseg(tmp_path: Path) -> None:
    reason_folder(tmp_path / "val")
    found = open_benchmark(f"reasonseg:{tmp_path}?split=val")
    a, b = found
    assert (a.id, a.question, b.question) == ("a", "the thing that keeps food cold", "der Kühlschrank")
    assert (a.tags["query"], b.tags["query"]) == ("sentence", "phrase")
    truth = a.masks()[0]
    assert truth.ignore is not None
    assert int(truth.ignore.sum()) == 25
    assert int(truth.mask.sum()) == 20 * 16 - 25
    assert int(b.masks()[0].mask.sum()) == 20 * 16
    assert a.images()[0].shape == (24, 32, 3)
    assert found.notes == ("1 files have no target polygon and are left out: c.json",)
    kept = reasonseg.load(tmp_path / "val", missing="empty", all_texts="yes")
    assert len(kept) == 6
    assert [sample.id for sample in kept][:2] == ["a", "a#1"]
    assert not list(kept)[-1].masks()[0].mask.any()


def test_reasonseg_scores_leave_ignored_pixels_out(tmp_path: Path) -> None:
    found = reasonseg.load(reason_folder(tmp_path / "val"))
    masks = {sample.id: sample.masks()[0].mask for sample in found}
    row = score(found, {"model": [predict(name, [mask]) for name, mask in masks.items()]}, resamples=0).row("model")
    assert row.value("giou") == 1.0
    value = row.value("seg-zero:giou")
    assert value is not None
    assert value < 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "a.json: not JSON"),
        ('{"text": ["x"]}', "text and shapes are expected"),
        ('{"text": ["x"], "shapes": [{"label": "target", "points": [[1]]}]}', "a.json, shapes[0]: points are pairs"),
        ('{"text": ["x"], "shapes": [{"label": "target", "points": []}]}', "without points"),
    ],
)
def test_reasonseg_errors_name_file_and_record(tmp_path: Path, text: str, said: str) -> None:
    folder = reason_folder(tmp_path / "val")
    (folder / "a.json").write_text(text)
    with pytest.raises(TerminalError) as caught:
        reasonseg.load(folder)
    assert said in str(caught.value)
    with pytest.raises(ConfigError, match="no image with a JSON"):
        reasonseg.load(tmp_path / "nothing")

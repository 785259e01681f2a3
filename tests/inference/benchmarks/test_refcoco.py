"""refCOCO's and gRefCOCO's files, right and wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco
from support.evaluation import box_mask, picture, predict

from engine.core.errors import ConfigError, TerminalError
from engine.core.images import encode_jpeg
from inference.benchmarks import refcoco
from inference.benchmarks.registry import open_benchmark
from inference.metrics.score import score


def instances() -> dict[str, Any]:
    rle = coco.encode(np.asfortranarray(box_mask(40, 50, (0, 0, 10, 40)).astype(np.uint8)))
    plain = {"size": [40, 50], "counts": [400, 400, 1200]}
    polygon = [[10.0, 10.0, 30.0, 10.0, 30.0, 20.0, 10.0, 20.0]]
    shapes: list[Any] = [polygon, plain, {"size": [40, 50], "counts": rle["counts"].decode()}]
    return {
        "images": [{"id": 7, "height": 40, "width": 50, "file_name": "COCO_7.jpg"}],
        "annotations": [
            {"id": 100 + place, "image_id": 7, "category_id": 1, "iscrowd": 0, "segmentation": shape}
            for place, shape in enumerate(shapes)
        ],
        "categories": [{"id": 1, "name": "thing"}],
    }


def refs(ann_ids: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "ref_id": 10 + place,
            "ann_id": ann_id,
            "category_id": 1,
            "image_id": 7,
            "file_name": "COCO_7_wrong.jpg",
            "split": "val" if place < 3 else "testA",
            "sent_ids": [2 * place, 2 * place + 1],
            "sentences": [
                {"raw": f"Thing {n}", "sent": f"thing {n}", "sent_id": 2 * place + n, "tokens": ["thing", str(n)]}
                for n in range(2)
            ],
        }
        for place, ann_id in enumerate(ann_ids)
    ]


def coco_folder(folder: Path, found: Any, name: str) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "COCO_7.jpg").write_bytes(encode_jpeg(picture(40, 50, seed=3)))
    (folder / "instances.json").write_text(json.dumps(instances()))
    if name.endswith(".p"):
        # the published files are protocol 0 of Python 2
        (folder / name).write_bytes(pickle.dumps(found, protocol=0))
    else:
        (folder / name).write_text(json.dumps(found))
    return folder


@pytest.mark.parametrize("name", ["refs(unc).p", "refs(unc).json"])
def test_refcoco(tmp_path: Path, name: str) -> None:
    found = open_benchmark(f"refcoco:{coco_folder(tmp_path / 'refcoco', refs([100, 101, 102, 100]), name)}?split=val")
    samples = list(found)
    assert len(samples) == len(found) == 6
    assert [sample.question for sample in samples[:2]] == ["thing 0", "thing 1"]
    polygon, plain, packed = (samples[place].masks()[0].mask for place in (0, 2, 4))
    assert int(polygon.sum()) == 200
    assert np.array_equal(plain, box_mask(40, 50, (10, 0, 20, 40)))
    assert np.array_equal(packed, box_mask(40, 50, (0, 0, 10, 40)))
    assert samples[0].images()[0].shape == (40, 50, 3)
    assert len(refcoco.load(tmp_path / "refcoco", split="testA", sentences="first")) == 1
    with pytest.raises(ConfigError, match="it has testA, val"):
        refcoco.load(tmp_path / "refcoco", split="test")


def test_grefcoco_has_several_and_no_targets(tmp_path: Path) -> None:
    folder = coco_folder(tmp_path / "grefcoco", refs([[100, 102], [-1], [101]]), "grefs(unc).json")
    samples = list(refcoco.load(folder))
    several, none, one = samples[0], samples[2], samples[4]
    assert [sample.tags["targets"] for sample in (several, none, one)] == ["several", "none", "one"]
    assert int(several.masks()[0].mask.sum()) == 200 + 400
    assert not none.masks()[0].mask.any()
    empty = np.zeros((40, 50), dtype=np.bool_)
    report = score(
        refcoco.load(folder),
        {"model": [predict(sample.id, [empty]) for sample in samples]},
        convention="gres",
        resamples=0,
    )
    row = report.row("model")
    assert (row.value("giou"), row.value("n_acc"), row.value("t_acc")) == (pytest.approx(1 / 3), 1.0, 0.0)
    assert row.value("targeted_giou") == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found[1].update(ann_id=999), "has no annotation 999"),
        (lambda found: found[1].pop("sentences"), "reference 1"),
        (lambda found: found[1].update(ann_id=[100, -1]), "reference 1"),
        (lambda found: found[0].update(image_id=8), "has no image 8"),
    ],
)
def test_refcoco_errors_name_file_and_record(tmp_path: Path, change: Any, said: str) -> None:
    found = refs([100, 101])
    change(found)
    folder = coco_folder(tmp_path / "refcoco", found, "refs(unc).json")
    with pytest.raises(TerminalError) as caught:
        refcoco.load(folder)
    assert said in str(caught.value)
    assert "refs(unc).json" in str(caught.value)

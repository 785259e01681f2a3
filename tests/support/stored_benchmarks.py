"""Makes the tiny stored samples of every benchmark format under tests/data/benchmarks; run once, kept in git.

    python -m support.stored_benchmarks FOLDER        (with tests/ on the path)

All pictures and shapes are drawn here. `samples.json` names how each sample is opened, its digest, its number of
samples and the pixels of its masks, which the tests hold the loaders to.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pycocotools import mask as coco

from engine.core.geometry import Mask
from engine.core.images import encode_jpeg
from engine.core.masks import encode_png
from inference.benchmarks.registry import open_benchmark
from support.evaluation import WINDOW, box_mask, picture, write_snapshot

OPENED = {
    "nest-official": f"official/{WINDOW}",
    "nest": f"ours/{WINDOW}",
    "reasonseg": "reasonseg:reasonseg?split=val",
    "refcoco-pickle": "refcoco:refcoco?split=val",
    "refcoco+-json": "refcoco:refcoco+?split=val",
    "refcocog-umd": "refcoco:refcocog?split=val&split_by=umd",
    "grefcoco": "refcoco:grefcoco?split=val",
    "seg-zero-reasonseg": "seg-zero:seg-zero-reasonseg",
    "nest-plus": "nest-plus:nest-plus.toml",
}
MIXTURE = f"""name = "NEST+"
seed = 7

[[part]]
name = "NEST"
source = "ours/{WINDOW}"
count = 3

[[part]]
name = "ReasonSeg"
source = "reasonseg:reasonseg?split=val"
count = 1

[[part]]
name = "RefSeg"
source = "refcoco:refcoco+?split=val"
count = 2
"""


def make(folder: Path) -> None:
    """Write every sample and `samples.json`."""
    write_snapshot(folder / "official" / WINDOW, rows=4, provenance=False, mask_bytes=encode_png)
    write_snapshot(folder / "ours" / WINDOW, rows=4)
    _reasonseg(folder / "reasonseg" / "val")
    for name, file, ids in (
        ("refcoco", "refs(unc).p", [100, 101, 102]),
        ("refcoco+", "refs(unc).json", [100, 102]),
        ("refcocog", "refs(umd).p", [101]),
        ("grefcoco", "grefs(unc).json", [[100, 102], [-1]]),
    ):
        _refcoco(folder / name, file, ids)
    _seg_zero(folder)
    (folder / "nest-plus.toml").write_text(MIXTURE, encoding="utf-8")
    told = {}
    for name, text in OPENED.items():
        found = open_benchmark(_below(folder, text))
        pixels = [[int(truth.mask.sum()) for truth in sample.masks()] for sample in found]
        told[name] = {"open": text, "sha256": found.digest, "count": len(found), "pixels": pixels}
    (folder / "samples.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _below(folder: Path, text: str) -> str:
    """The text with its source inside the folder."""
    loader, colon, source = text.rpartition(":")
    return f"{loader}{colon}{folder / source}"


def _reasonseg(folder: Path) -> None:
    folder.mkdir(parents=True)
    square = [[2, 2], [21, 2], [21, 17], [2, 17]]
    inner = [[5, 5], [9, 5], [9, 9], [5, 9]]
    found: dict[str, tuple[Any, list[tuple[str, Any]]]] = {
        "a": (["the thing that keeps food cold"], [("ignore", inner), ("target", square), ("flag", inner)]),
        "b": (["der Kühlschrank", "a second wording"], [("target", square)]),
        "c": (["nothing is drawn"], [("flag", square)]),
    }
    for place, (name, (texts, shapes)) in enumerate(found.items()):
        (folder / f"{name}.jpg").write_bytes(encode_jpeg(picture(24, 32, seed=place)))
        drawn = [{"label": label, "labels": [label], "shape_type": "polygon", "points": p} for label, p in shapes]
        raw = json.dumps({"text": texts, "is_sentence": name == "a", "shapes": drawn}, ensure_ascii=False)
        # one of the published files is not UTF-8
        (folder / f"{name}.json").write_bytes(raw.encode("cp1252" if name == "b" else "utf-8"))


def _refcoco(folder: Path, name: str, ann_ids: list[Any]) -> None:
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "COCO_train2014_000000000007.jpg").write_bytes(encode_jpeg(picture(40, 50, seed=3)))
    rle = coco.encode(np.asfortranarray(box_mask(40, 50, (0, 0, 10, 40)).astype(np.uint8)))
    shapes: list[Any] = [
        [[10.0, 10.0, 30.0, 10.0, 30.0, 20.0, 10.0, 20.0]],
        {"size": [40, 50], "counts": [400, 400, 1200]},
        {"size": [40, 50], "counts": rle["counts"].decode()},
    ]
    instances = {
        "images": [{"id": 7, "height": 40, "width": 50, "file_name": "COCO_train2014_000000000007.jpg"}],
        "annotations": [
            {"id": 100 + n, "image_id": 7, "category_id": 1, "iscrowd": int(n > 0), "segmentation": shape}
            for n, shape in enumerate(shapes)
        ],
        "categories": [{"id": 1, "name": "thing"}],
    }
    (folder / "instances.json").write_text(json.dumps(instances), encoding="utf-8")
    refs = [
        {
            "ref_id": 10 + place,
            "ann_id": ann_id,
            "category_id": 1,
            "image_id": 7,
            "file_name": "COCO_train2014_000000000007_1.jpg",
            "split": "val",
            "sent_ids": [2 * place],
            "sentences": [
                {"raw": f"Thing {place}", "sent": f"thing {place}", "sent_id": 2 * place, "tokens": ["thing"]}
            ],
        }
        for place, ann_id in enumerate(ann_ids)
    ]
    # the published pickles are protocol 0 of Python 2
    data = pickle.dumps(refs, protocol=0) if name.endswith(".p") else json.dumps(refs).encode()
    (folder / name).write_bytes(data)


def seg_zero_row(mask: Mask) -> dict[str, Any]:
    """A row of Seg-Zero's ReasonSeg table."""
    return {
        "image": {"bytes": encode_jpeg(picture(20, 30, seed=1)), "path": None},
        "mask": mask.tolist(),
        "text": "the lid",
        "image_id": "1",
        "ann_id": "2",
        "img_height": 20,
        "img_width": 30,
    }


def _seg_zero(folder: Path) -> None:
    mask = box_mask(20, 30, (5, 5, 15, 10))
    row = seg_zero_row(mask)
    (folder / "seg-zero-reasonseg").mkdir()
    pq.write_table(pa.Table.from_pylist([row]), folder / "seg-zero-reasonseg" / "test.parquet")
    new = '[{"bbox_2d": [84, 42, 420, 210], "point_2d": [210, 105]}]'
    old = "<box>(84,42),(420,210)</box><points>(210,105),(300,110)</points>"
    rows = [
        {"id": f"r{n}", "problem": "the lid", "solution": text, "image": None, "img_height": 420, "img_width": 840}
        for n, text in enumerate((new, old))
    ]
    (folder / "seg-zero-training").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "seg-zero-training" / "train.parquet")


if __name__ == "__main__":
    make(Path(sys.argv[1]))

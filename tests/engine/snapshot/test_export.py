"""Exports are read back as their readers read them, and give the same masks pixel by pixel."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image as PilImage
from support import snapshots

from engine.core.errors import ConfigError
from engine.snapshot.export import export_coco, export_reasonseg, polygons
from engine.snapshot.revise import read_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 3, images_per_article=2)
    return found


def masks_of(folder: Path) -> dict[str, np.ndarray]:
    return {
        f"{row.id}_{n}": np.asarray(PilImage.open(io.BytesIO(item["bytes"]))) > 0
        for row in read_rows(folder)
        for n, item in enumerate(row.default["annotations"])
    }


def test_coco_is_read_by_pycocotools(folder: Path, tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    done = export_coco(folder, tmp_path / "coco")
    assert (done.images, done.masks) == (6, 6)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(done.path / "annotations.json"))
    expected = masks_of(folder)
    assert {item["name"] for item in coco.loadCats(coco.getCatIds())} == {"person", "product"}
    for annotation in coco.loadAnns(coco.getAnnIds()):
        image = coco.loadImgs(annotation["image_id"])[0]
        mask = coco.annToMask(annotation).astype(bool)
        assert np.array_equal(mask, expected[image["file_name"].removesuffix(".jpg")])
        assert annotation["area"] == mask.sum()
        x, y, w, h = (int(value) for value in annotation["bbox"])
        assert mask[y : y + h, x : x + w].sum() == mask.sum()
        with PilImage.open(done.path / "images" / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"])
        assert annotation["question"].startswith("Who or what")


def reasonseg_mask(told: dict[str, Any], shape: tuple[int, int]) -> np.ndarray:
    """The mask as ReasonSeg's readers make it: each target polygon's border drawn and its inside filled with 1."""
    mask = np.zeros(shape, dtype=np.uint8)
    for shape_told in told["shapes"]:
        assert shape_told["label"] == "target"
        points = np.array([shape_told["points"]], dtype=np.int32)
        cv2.polylines(mask, points, True, 1, 1)
        cv2.fillPoly(mask, points, 1)
    return mask.astype(bool)


def test_reasonseg_is_read_back(folder: Path, tmp_path: Path) -> None:
    done = export_reasonseg(folder, tmp_path / "rs")
    expected = masks_of(folder)
    names = {path.stem for path in (done.path / "val").glob("*.json")}
    assert names == set(expected) == {path.stem for path in (done.path / "val").glob("*.jpg")}
    for name, mask in expected.items():
        told = json.loads((done.path / "val" / f"{name}.json").read_text(encoding="utf-8"))
        assert np.array_equal(reasonseg_mask(told, mask.shape), mask)
        assert told["is_sentence"] is True
        assert len(told["text"]) == 1


@settings(max_examples=150, deadline=None)
@given(hnp.arrays(np.bool_, st.tuples(st.integers(1, 24), st.integers(1, 24))))
def test_polygons_give_any_mask_back(mask: np.ndarray) -> None:
    told = {"shapes": [{"label": "target", "points": points} for points in polygons(mask)]}
    assert np.array_equal(reasonseg_mask(told, mask.shape), mask)


def test_rings_in_rings() -> None:
    ys, xs = np.mgrid[0:80, 0:90]
    radius = np.hypot(ys - 40, xs - 45)
    mask = ((radius < 38) & (radius > 30)) | ((radius < 20) & (radius > 8)) | (radius < 3)
    told = {"shapes": [{"label": "target", "points": points} for points in polygons(mask)]}
    assert np.array_equal(reasonseg_mask(told, mask.shape), mask)
    assert len(told["shapes"]) < 20


def test_an_export_overwrites_nothing_and_needs_pictures(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exists"):
        export_coco(folder, tmp_path)
    urls = tmp_path / "urls"
    snapshots.snapshot(urls, 1, config=snapshots.CONFIG.model_copy(update={"publish": "urls"}))
    with pytest.raises(ConfigError, match="rehydrate"):
        export_reasonseg(urls, tmp_path / "out")

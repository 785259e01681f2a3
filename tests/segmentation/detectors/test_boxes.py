from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from segmentation.detectors.boxes import overlaps, select, suppress, to_corners

CASE = Path(__file__).parents[2] / "data/cases/36-dino-boxes"


def test_case_36_pixels_clipping_order_and_one_box_per_object() -> None:
    raw = json.loads((CASE / "raw.json").read_text())
    boxes = np.array([[np.nan if v is None else v for v in row] for row in raw["boxes_cxcywh"]], np.float32)
    found = select(
        boxes,
        np.array(raw["scores"], np.float32),
        raw["labels"],
        width=raw["width"],
        height=raw["height"],
        box_threshold=raw["box_threshold"],
        nms_iou=raw["nms_iou"],
    )
    right = [
        ("ferry", 0.9, [160, 120, 480, 360]),
        ("tug", 0.8, [160, 120, 480, 360]),
        ("mayor", 0.7, [0, 0, 96, 120]),
        ("bridge", 0.65, [448, 336, 640, 480]),
        ("ferry", 0.5, [6.4, 2.4, 633.6, 477.6]),
        ("mayor", 0.36, [96, 360, 160, 408]),
    ]
    assert [d.phrase for d in found] == [r[0] for r in right]
    assert [d.score for d in found] == pytest.approx([r[1] for r in right])
    for detection, (_, _, box) in zip(found, right, strict=True):
        b = detection.box
        assert [b.x1, b.y1, b.x2, b.y2] == pytest.approx(box, abs=1e-3)


def test_the_threshold_is_strict_and_a_score_that_is_no_number_is_out() -> None:
    box = np.array([[0.5, 0.5, 0.2, 0.2]], np.float32)
    for score in (0.35, float("nan")):
        scores = np.array([score], np.float32)
        threshold = float(scores[0]) if score == score else 0.0
        assert select(box, scores, ["a"], width=10, height=10, box_threshold=threshold, nms_iou=0.5) == []
    outside = np.array([[1.5, 0.5, 0.2, 0.2]], np.float32)
    one = np.ones(1, np.float32)
    assert select(outside, one, ["a"], width=10, height=10, box_threshold=0.1, nms_iou=0.5) == []
    assert select(box, one, [None], width=10, height=10, box_threshold=0.1, nms_iou=0.5) == []


BOXES = arrays.arrays(np.float32, st.tuples(st.integers(1, 12), st.just(4)), elements=st.floats(0, 1, width=32))


@given(BOXES, st.floats(0.05, 0.95))
def test_kept_boxes_overlap_little_and_every_other_overlaps_a_better_one(boxes: np.ndarray, iou: float) -> None:
    corners = to_corners(boxes, width=640, height=480)
    order = list(range(len(boxes)))
    kept = suppress(corners, order, iou=iou)
    table = overlaps(corners)
    assert all(table[a, b] <= iou for a in kept for b in kept if a != b)
    for index in set(order) - set(kept):
        assert any(table[index, better] > iou for better in kept if better < index)


@given(BOXES)
def test_suppression_agrees_with_torchvision(boxes: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    nms = pytest.importorskip("torchvision.ops").nms
    corners = to_corners(boxes, width=640, height=480)
    # boxes whose area vanishes in float32 have no overlap to speak of, and the two libraries round them differently
    full = np.flatnonzero((corners[:, 2] - corners[:, 0] > 1e-3) & (corners[:, 3] - corners[:, 1] > 1e-3))
    corners = corners[full]
    scores = torch.arange(len(corners), 0, -1, dtype=torch.float32)
    table = overlaps(corners)
    # Left out: overlaps that lie on the threshold up to rounding.
    if np.any(np.abs(table - 0.5) < 1e-5):
        return
    assert suppress(corners, list(range(len(corners))), iou=0.5) == nms(torch.tensor(corners), scores, 0.5).tolist()

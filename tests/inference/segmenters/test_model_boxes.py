"""Reading boxes of vision models: the stored case, both published reply forms, and whatever else may come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.segmenters.model_boxes import read_boxes

CASE = Path(__file__).parents[2] / "data" / "cases" / "46-model-boxes"
REPLIES = json.loads((CASE / "replies.json").read_text())
EXPECTED = json.loads((CASE / "expected.json").read_text())


def rounded(text: str, space: str) -> list[list[int]] | None:
    found = read_boxes(text, space=space, width=1280, height=720)  # type: ignore[arg-type]
    if found is None:
        return None
    return [[int(side + 0.5) for side in (one.box.x1, one.box.y1, one.box.x2, one.box.y2)] for one in found.objects]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply["id"])
def test_case_46(reply: dict[str, str]) -> None:
    assert rounded(reply["text"], reply["space"]) == EXPECTED[reply["id"]]


def test_dropped_boxes_are_told_from_nothing_there() -> None:
    texts = {reply["id"]: reply["text"] for reply in REPLIES}
    nothing = read_boxes(texts["b05"], space="resized_840", width=1280, height=720)
    flat = read_boxes(texts["b09"], space="resized_840", width=1280, height=720)
    assert nothing is not None
    assert flat is not None
    assert (nothing.dropped, flat.dropped) == (0, 1)


def test_the_first_published_form_with_tags() -> None:
    text = (
        "<think>the one with the cup</think><answer><box>(210,140),(630,700)</box>"
        "<points>(400,300),(420,310)</points></answer>"
    )
    found = read_boxes(text, space="resized_840", width=1280, height=720)
    assert found is not None
    assert rounded(text, "resized_840") == [[320, 120, 960, 600]]
    assert [(round(x), round(y)) for x, y in found.objects[0].points] == [(610, 257), (640, 266)]


def test_points_of_each_object_are_scaled_by_both_factors() -> None:
    text = '<answer>[{"bbox_2d": [0, 0, 420, 420], "point_2d": [210, 210]}, {"bbox_2d": [420, 0, 840, 840]}]</answer>'
    found = read_boxes(text, space="resized_840", width=1680, height=420)
    assert found is not None
    assert found.objects[0].points == ((420.0, 105.0),)
    assert found.objects[1].points == ()


@given(st.text())
def test_any_text_is_read_or_refused_without_an_error(text: str) -> None:
    found = read_boxes(f"<answer>{text}</answer>", space="norm_1000", width=64, height=48)
    assert found is None or all(one.box.area > 0 for one in found.objects)


@given(st.lists(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5), max_size=4))
def test_boxes_lie_inside_the_image(corners: list[list[float]]) -> None:
    text = json.dumps([{"bbox_2d": box} for box in corners])
    found = read_boxes(text, space="norm_1", width=64, height=48)
    assert found is not None
    assert len(found.objects) + found.dropped == len(corners)
    for one in found.objects:
        assert 0 <= one.box.x1 < one.box.x2 <= 64
        assert 0 <= one.box.y1 < one.box.y2 <= 48

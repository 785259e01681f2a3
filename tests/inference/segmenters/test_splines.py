"""Splines against shapes whose area is known, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shapes import SIDE, circle_points, disc, ring, star, star_points

from engine.core.geometry import Box, mask_box, mask_iou
from inference.segmenters.splines import Outline, control_points, curve, draw, fill


def test_circle_ring_and_star() -> None:
    outer, inner = Outline(circle_points(80, 12)), Outline(circle_points(40, 10), hole=True)
    corners = frozenset(range(10))
    assert mask_iou(draw([outer], height=SIDE, width=SIDE), disc(80)) >= 0.995
    assert mask_iou(draw([inner, outer], height=SIDE, width=SIDE), ring(80, 40)) >= 0.995
    assert mask_iou(draw([Outline(star_points(), corners)], height=SIDE, width=SIDE), star()) >= 0.995


def test_the_curve_passes_its_points() -> None:
    points = circle_points(50, 9)
    control = control_points(Outline(points))
    on = curve(control)
    distance = np.linalg.norm(points[:, None] - on[None], axis=2).min(axis=1)
    assert float(distance.max()) < 1e-9


def test_a_polygon_is_filled_by_pixel_centres() -> None:
    square = np.array([[2.0, 3.0], [7.0, 3.0], [7.0, 6.0], [2.0, 6.0]])
    mask = fill(square, 10, 12)
    assert mask.shape == (10, 12)
    assert int(mask.sum()) == 15
    assert mask_box(mask) == Box(2.0, 3.0, 7.0, 6.0)
    assert not fill(square + 100, 10, 12).any()


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=3, max_size=12),
    corners=st.sets(st.integers(0, 11)),
)
def test_curves_stay_in_their_box(points: list[tuple[float, float]], corners: set[int]) -> None:
    outline = Outline(np.array(points), frozenset(c for c in corners if c < len(points)))
    box = Box(20.0, 30.0, 70.0, 60.0)
    on = curve(control_points(outline), within=box)
    assert on[:, 0].min() >= 20 - 1e-9
    assert on[:, 0].max() <= 70 + 1e-9
    assert on[:, 1].min() >= 30 - 1e-9
    assert on[:, 1].max() <= 60 + 1e-9


def test_the_start_of_the_ring_does_not_matter() -> None:
    points = star_points()
    turned = Outline(np.roll(points, 3, axis=0), frozenset({0, 4}))
    same = Outline(points, frozenset({7, 1}))
    one = draw([turned], height=SIDE, width=SIDE)
    assert mask_iou(one, draw([same], height=SIDE, width=SIDE)) == pytest.approx(1.0)


@pytest.mark.parametrize("points", [[[0, 0], [1, 1]], [[0, 0, 1], [1, 1, 1], [2, 2, 2]], [[0, 0], [1, 1], [np.nan, 2]]])
def test_what_is_no_outline_is_refused(points: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="three points"):
        control_points(Outline(np.array(points, float)))

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from support.tiny_models import VECTORS

from inference.segmenters.llava.points import SEVEN_B, THIRTEEN_B, PointRule, pick_points

pytestmark = pytest.mark.gpu_extra


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize(("name", "rule"), [("7b", SEVEN_B), ("13b", THIRTEEN_B)])
def test_points_and_labels_equal_the_vectors(case: int, name: str, rule: PointRule) -> None:
    stored = np.load(VECTORS / "sesame_read/expected_read/point_picker.npz")
    height, width = stored[f"c{case}_shape_hw"].tolist()
    points, labels = pick_points(stored[f"c{case}_similarity"], height=height, width=width, side=336, rule=rule)
    np.testing.assert_array_equal(labels, stored[f"c{case}_{name}_labels"])
    np.testing.assert_allclose(points, stored[f"c{case}_{name}_points_xy"], atol=0.01)


@settings(max_examples=15, deadline=None)
@given(st.integers(20, 300), st.integers(20, 300), st.integers(0, 1000))
def test_points_lie_in_the_image_and_positives_come_first(height: int, width: int, seed: int) -> None:
    similarity = np.random.default_rng(seed).normal(0, 40, 576).astype(np.float32)
    points, labels = pick_points(similarity, height=height, width=width, side=336)
    assert len(points) == len(labels) == 30
    assert ((points >= 0) & (points <= [width, height])).all()
    assert sorted(labels.tolist(), key=[1, 0, -1].index) == labels.tolist()


def test_a_flat_similarity_gives_points_without_a_warning() -> None:
    points, labels = pick_points(np.full(576, 3, np.float32), height=60, width=80, side=336)
    assert set(labels.tolist()) == {0}
    assert np.isfinite(points).all()

"""Counts by spans equal counts by pixels, for any masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.core.geometry import Mask
from engine.core.masks import encode_rle
from engine.core.schema import Rle
from inference.metrics.baselines import random_box
from inference.metrics.counts import Counts, count, count_rle, everything, nothing, prepare, rectangle
from inference.spans import spans_of, spans_of_grey

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@st.composite
def three(draw: st.DrawFn) -> tuple[Mask, Mask, Mask]:
    shape = draw(SHAPES)
    one = arrays(np.bool_, shape)
    return draw(one), draw(one), draw(one)


def by_pixels(truth: Mask, ignore: Mask, predicted: Mask) -> Counts:
    valid = ~ignore
    return Counts(
        intersection=int((truth & predicted & valid).sum()),
        target=int((truth & valid).sum()),
        predicted=int((predicted & valid).sum()),
        ignored=int(ignore.sum()),
        predicted_ignored=int((predicted & ignore).sum()),
        pixels=truth.size,
    )


@given(three())
def test_spans_count_as_pixels_do(masks: tuple[Mask, Mask, Mask]) -> None:
    truth, ignore, predicted = masks
    expected = by_pixels(truth, ignore, predicted)
    prepared = prepare(truth, ignore=ignore)
    assert count(prepared, predicted) == expected
    assert count_rle(prepared, encode_rle(predicted)) == expected
    assert count(prepare(truth), predicted) == by_pixels(truth, np.zeros_like(ignore), predicted)
    assert everything(prepared) == by_pixels(truth, ignore, np.ones_like(truth))
    assert nothing(prepared) == by_pixels(truth, ignore, np.zeros_like(truth))


@given(three(), st.tuples(*[st.floats(0, 1)] * 4))
def test_a_box_counts_as_its_pixels(masks: tuple[Mask, Mask, Mask], corners: tuple[float, float, float, float]) -> None:
    truth, ignore, _ = masks
    found = rectangle(prepare(truth, ignore=ignore), corners)
    assert found.predicted + found.predicted_ignored >= 1
    assert found.intersection <= min(found.target, found.predicted)
    assert rectangle(prepare(truth), (0, 0, 1, 1)) == everything(prepare(truth))


def test_large_counts_do_not_wrap() -> None:
    mask = np.ones((700, 900), dtype=np.bool_)
    found = count(prepare(mask), mask)
    assert (found.intersection, found.union) == (630_000, 630_000)


def test_a_square_of_fixed_size_weighs_both_masks_alike() -> None:
    mask = np.zeros((100, 300), dtype=np.bool_)
    mask[:, :150] = True
    found = count_rle(prepare(mask, size_px=48), encode_rle(~mask))
    assert (found.intersection, found.target, found.predicted, found.pixels) == (0, 48 * 24, 48 * 24, 48 * 48)


def test_other_shapes_and_broken_codes_are_errors() -> None:
    truth = prepare(np.zeros((20, 30), dtype=np.bool_))
    with pytest.raises(ValueError, match="30x20, the truth 20x30"):
        count(truth, np.zeros((30, 20), dtype=np.bool_))
    with pytest.raises(ValueError, match="30x20, the truth 20x30"):
        count_rle(truth, encode_rle(np.zeros((30, 20), dtype=np.bool_)))
    with pytest.raises(ValueError, match="does not fill"):
        count_rle(truth, Rle(size=(20, 30), counts="01f00"))


def test_a_random_box_is_the_same_for_the_same_key() -> None:
    truth = prepare(np.eye(16, dtype=np.bool_))
    assert random_box(truth, key="a/0", seed=1) == random_box(truth, key="a/0", seed=1)
    boxes = {random_box(truth, key=f"s{n}/0", seed=1).predicted for n in range(50)}
    assert len(boxes) > 10


@given(three())
def test_grey_pictures_of_two_values_count_as_masks(masks: tuple[Mask, Mask, Mask]) -> None:
    truth, other, _ = masks
    grey = truth.astype(np.uint8) * np.uint8(255)
    found = spans_of_grey(grey)
    assert found is not None
    assert found.edges.tolist() == spans_of(truth).edges.tolist()
    assert found.area == truth.sum()
    wrong = grey.copy()
    wrong[other] = 128
    assert (spans_of_grey(wrong) is None) == bool(other.any())


@given(three(), st.tuples(*[st.integers(0, 9)] * 4))
def test_pixels_in_a_box(masks: tuple[Mask, Mask, Mask], corners: tuple[int, int, int, int]) -> None:
    truth = masks[0]
    height, width = truth.shape
    (x1, x2), (y1, y2) = sorted(min(corners[n], width) for n in (0, 2)), sorted(min(corners[n], height) for n in (1, 3))
    assert spans_of(truth).in_box((x1, y1, x2, y2), height) == truth[y1:y2, x1:x2].sum()

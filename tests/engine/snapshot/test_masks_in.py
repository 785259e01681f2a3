"""Case 23: one mask in eleven encodings; what is not plain is refused. And published masks read back exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.core.geometry import mask_box
from engine.core.masks import decode_rle, encode_png, encode_rle
from engine.snapshot.masks_in import MaskError, read_mask

CASE = Path(__file__).parents[2] / "data" / "cases" / "23-mask-modes"
EXACT = (
    "L255.png",
    "L1.png",
    "bit1.png",
    "RGB255.png",
    "I16_65535.png",
    "RGBA_alpha_is_mask.png",
    "P_dark_palette.png",
)


@pytest.mark.parametrize("name", EXACT)
def test_plain_encodings_give_the_mask(name: str) -> None:
    read = read_mask((CASE / name).read_bytes())
    assert int(read.mask.sum()) == 650
    assert read.mask.shape == (40, 60)
    box = mask_box(read.mask)
    assert box is not None
    assert (box.x1, box.y1, box.x2, box.y2) == (15, 10, 50, 30)
    assert not read.remarks


@pytest.mark.parametrize("name", ["L_jpeg_ringing.jpg", "L_soft_edge.png"])
def test_masks_that_are_not_binary_are_cut_with_a_remark(name: str) -> None:
    read = read_mask((CASE / name).read_bytes())
    assert abs(int(read.mask.sum()) - 650) <= 13
    assert "not binary" in read.remarks[0]


def test_the_ignore_value_is_told_apart() -> None:
    read = read_mask((CASE / "L_1_with_ignore255.png").read_bytes())
    assert (int(read.mask.sum()), int(read.ignored.sum())) == (650, 50)


def test_an_inverted_palette_is_refused() -> None:
    with pytest.raises(MaskError, match="palette"):
        read_mask((CASE / "P_voc_like_inverted_index.png").read_bytes())


@pytest.mark.parametrize("data", [b"", b"not a picture"])
def test_no_picture(data: bytes) -> None:
    with pytest.raises(MaskError):
        read_mask(data)


masks = hnp.arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40))).filter(
    lambda m: m.any() and not m.all()
)


@given(masks)
def test_published_masks_read_back_exactly(mask: np.ndarray) -> None:
    assert np.array_equal(read_mask(encode_png(mask)).mask, mask)
    assert np.array_equal(decode_rle(encode_rle(mask)), mask)

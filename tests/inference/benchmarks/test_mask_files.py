"""One mask in many encodings: each read right, or refused, never guessed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.core.geometry import mask_box
from inference.benchmarks.mask_files import mask_size, read_mask

CASE = Path(__file__).parents[2] / "data" / "cases" / "23-mask-modes"
EXPECTED = json.loads((CASE / "expected.json").read_text())
EXACT = ("L255", "L1", "bit1", "RGB255", "I16_65535", "RGBA_alpha_is_mask", "P_dark_palette", "L_1_with_ignore255")


@pytest.mark.parametrize("name", EXACT)
def test_exact_encodings(name: str) -> None:
    data = (CASE / f"{name}.png").read_bytes()
    found = read_mask(data)
    assert int(np.count_nonzero(found.truth.mask)) == EXPECTED["area"]
    box = mask_box(found.truth.mask)
    assert box is not None
    assert [box.x1, box.y1, box.x2, box.y2] == EXPECTED["bbox_xyxy"]
    assert list(found.truth.mask.shape) == EXPECTED["shape_hw"] == list(mask_size(data))
    assert found.warning == ""
    ignored = 0 if found.truth.ignore is None else int(np.count_nonzero(found.truth.ignore))
    assert ignored == (EXPECTED["ignore_area"] if "ignore" in name else 0)


@pytest.mark.parametrize("name", ["L_jpeg_ringing.jpg", "L_soft_edge.png"])
def test_soft_masks_are_thresholded_with_a_warning(name: str) -> None:
    found = read_mask((CASE / name).read_bytes())
    assert int(np.count_nonzero(found.truth.mask)) == pytest.approx(EXPECTED["area"], rel=0.02)
    assert "not binary" in found.warning


def test_unclear_palette_is_refused() -> None:
    with pytest.raises(ValueError, match="palette"):
        read_mask((CASE / "P_voc_like_inverted_index.png").read_bytes())


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"<html>not a mask</html>" * 3])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no image can be decoded"):
        read_mask(data)

from __future__ import annotations

import numpy as np
import pytest

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Box, Mask
from engine.core.protocols import Segmentation
from engine.core.schema import Code
from segmentation.gates import CODES, Mine, check
from segmentation.gates import figures as f

CONFIG = AnnotateSection()
BOX = Box(20, 20, 60, 80)


def block(box: Box = BOX, *, height: int = 100, width: int = 100) -> Mask:
    mask = np.zeros((height, width), bool)
    mask[int(box.y1) : int(box.y2), int(box.x1) : int(box.x2)] = True
    return mask


def verdict(mask: Mask, **more: object) -> Code | None:
    told = {"box": BOX, "segmentation": Segmentation(mask, 0.9, 0.9), **more}
    return check(Mine(**told), CONFIG)[1]  # type: ignore[arg-type]


def test_a_good_mask_passes_and_all_figures_are_kept() -> None:
    found, code = check(Mine(box=BOX, segmentation=Segmentation(block(), 0.9, 0.9)), CONFIG)
    assert code is None
    assert [figure.name for figure in found] == [
        "area_min",
        "area_max",
        "score",
        "stability",
        "box_fill",
        "parts",
        "overlap",
        "border",
    ]
    assert {figure.name: figure.value for figure in found}["area_min"] == pytest.approx(0.24)


def test_each_gate_has_its_code() -> None:
    tiny, whole, torn = block(Box(0, 0, 2, 2)), block(Box(0, 0, 100, 100)), block()
    torn[35:65, :] = False
    assert verdict(np.zeros((100, 100), bool)) is Code.MASK_EMPTY
    assert verdict(tiny) is Code.MASK_TOO_SMALL
    assert verdict(whole) is Code.MASK_TOO_LARGE
    assert verdict(block(), segmentation=Segmentation(block(), 0.1, 0.9)) is Code.MASK_LOW_QUALITY
    assert verdict(block(), segmentation=Segmentation(block(), 0.9, 0.1)) is Code.MASK_UNSTABLE
    assert verdict(block(Box(20, 20, 27, 60)), box=BOX) is Code.MASK_LOW_QUALITY  # fills too little of its box
    assert verdict(torn) is Code.MASK_FRAGMENTED
    assert verdict(block(), others=[block(Box(20, 20, 60, 60))]) is Code.MASK_OVERLAPS
    assert verdict(block(Box(0, 0, 40, 80)), box=Box(0, 0, 40, 80)) is Code.MASK_CROPPED
    assert verdict(block(), person=True, faces=[Box(30, 22, 50, 40)]) is None
    below = block(Box(20, 45, 60, 80))
    assert verdict(below, person=True, faces=[Box(30, 22, 50, 40)]) is Code.MASK_NO_FACE
    assert verdict(below, person=False, faces=[Box(30, 22, 50, 40)]) is None
    assert verdict(block(), second=[Box(50, 20, 90, 80)]) is Code.PROMPTS_DISAGREE
    assert verdict(block(), second=[]) is Code.PROMPTS_DISAGREE
    assert set(CODES.values()) <= set(Code)


def test_the_first_failure_names_the_rejection_and_later_figures_are_kept() -> None:
    found, code = check(Mine(box=BOX, segmentation=Segmentation(block(Box(0, 0, 2, 2)), 0.1, 0.1)), CONFIG)
    assert code is Code.MASK_TOO_SMALL
    assert [figure.name for figure in found if not figure.passed][:3] == ["area_min", "score", "stability"]


def test_figures_by_hand() -> None:
    mask = block(Box(10, 10, 20, 20))
    mask[50:55, 50:55] = True
    assert f.area_share(mask) == pytest.approx(0.0125)
    assert f.parts_loss(mask) == pytest.approx(0.2)
    assert f.box_fill(mask, Box(10, 10, 20, 30)) == pytest.approx(0.5)
    assert f.overlap(mask, [block(Box(15, 10, 20, 20)), block(Box(50, 50, 60, 60))]) == pytest.approx(0.4)
    assert f.overlap(mask, []) == 0.0
    assert f.border_share(block(Box(0, 10, 10, 60))) == pytest.approx(0.5)
    assert f.border_share(block(Box(10, 50, 90, 100))) == 0.0  # standing on the lower edge is not cropped
    assert f.face_of(BOX, [Box(70, 20, 80, 30), Box(30, 25, 40, 35)]) == Box(30, 25, 40, 35)
    assert f.face_of(BOX, [Box(30, 70, 40, 80)]) is None


@pytest.mark.parametrize("name", ["area_share", "parts_loss", "border_share"])
def test_empty_masks_have_figures(name: str) -> None:
    assert getattr(f, name)(np.zeros((5, 5), bool)) == 0.0

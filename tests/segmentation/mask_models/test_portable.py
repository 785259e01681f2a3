from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.annotating import ellipse

from engine.core.errors import ConfigError
from engine.core.geometry import Box, Image, mask_box, mask_iou
from engine.core.images import open_image
from engine.core.store.files import sha256_file
from flows import sample
from segmentation.mask_models.portable import PortableMasker
from segmentation.mask_models.portable_people import PeopleFinder
from segmentation.mask_models.portable_prior import PersonPrior

WEEK = Path(sample.__file__).parent
MASKER = PortableMasker()


def disc(box: Box, *, height: int = 240, width: int = 320) -> tuple[Image, np.ndarray]:  # type: ignore[type-arg]
    pixels = np.random.default_rng(3).normal(110, 10, (height, width, 3)).clip(0, 255).astype(np.uint8)
    mask = ellipse(height, width, box)
    pixels[mask] = (205, 70, 40)
    return pixels, mask


def test_the_bundled_model_is_the_one_that_is_named() -> None:
    assert sha256_file(PersonPrior.FILE) == PersonPrior.SHA256
    assert MASKER.model().weights_sha256 == PersonPrior.SHA256


def test_a_missing_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="person model"):
        PersonPrior(tmp_path / "gone.tflite").of(np.zeros((40, 40, 3), np.uint8), Box(0, 0, 40, 40))


def test_a_thing_is_cut_out_of_its_box_at_full_size() -> None:
    box = Box(90, 60, 210, 180)
    pixels, mask = disc(box)
    (found,) = MASKER.segment(pixels, [box])
    assert found.mask.shape == mask.shape
    assert found.mask.dtype == np.bool_
    assert mask_iou(found.mask, mask) > 0.97
    assert found.score > 0.8
    assert found.stability > 0.9


def test_large_pictures_keep_their_size() -> None:
    box = Box(700, 500, 1700, 1300)
    pixels, mask = disc(box, height=1800, width=2400)
    (found,) = MASKER.segment(pixels, [box])
    assert mask_iou(found.mask, mask) > 0.97


def test_a_person_is_cut_out_with_the_face() -> None:
    pixels = open_image((WEEK / "site" / "images" / "medal-night.jpg").read_bytes()).pixels
    for entity in ("eileen-collins", "grace-hopper"):
        mask = open_image((WEEK / "truth" / "medal-night" / f"{entity}.png").read_bytes()).pixels[..., 0] > 127
        box = mask_box(mask)
        assert box is not None
        (found,) = MASKER.segment(pixels, [box])
        assert mask_iou(found.mask, mask) > 0.95


def test_people_who_touch_are_shared_out() -> None:
    pixels = open_image((WEEK / "site" / "images" / "medal-night.jpg").read_bytes()).pixels
    people = PeopleFinder().find(pixels)
    assert len(people) == 2
    first, second = (person.region > 0.5 for person in people)
    assert not (first & second).any()
    for person in people:
        assert person.box.intersection(person.face.box) == pytest.approx(person.face.box.area, rel=0.05)


def test_the_same_picture_gives_the_same_masks_whatever_else_is_asked() -> None:
    box, other = Box(90, 60, 210, 180), Box(5, 5, 60, 60)
    pixels, _ = disc(box)
    (alone,) = MASKER.segment(pixels, [box])
    together = PortableMasker().segment(pixels, [other, box])
    assert np.array_equal(alone.mask, together[1].mask)
    assert (alone.score, alone.stability) == (together[1].score, together[1].stability)


@pytest.mark.parametrize(
    "box", [Box(400, 10, 500, 50), Box(-50, -50, -10, -10), Box(10, 10, 10.5, 80), Box(0, 0, 320, 240)]
)
def test_odd_boxes_give_a_mask_of_the_right_shape(box: Box) -> None:
    pixels, _ = disc(Box(90, 60, 210, 180))
    (found,) = MASKER.segment(pixels, [box])
    assert found.mask.shape == (240, 320)
    assert 0.0 <= found.score <= 1.0
    assert 0.0 <= found.stability <= 1.0
    if box.clip(320, 240).area < 10:
        assert not found.mask.any()


def test_no_boxes_no_masks() -> None:
    assert MASKER.segment(np.zeros((20, 20, 3), np.uint8), []) == []


def test_a_point_says_which_of_two_things_in_a_box_is_meant() -> None:
    image = np.full((160, 240, 3), 235, np.uint8)
    rng = np.random.default_rng(4)
    image += rng.integers(0, 8, image.shape, dtype=np.uint8)
    image[40:120, 30:100] = (170, 40, 40)
    image[60:110, 140:200] = (30, 60, 160)
    box = Box(20, 30, 210, 130)
    blue = (170.0, 85.0)
    (plain,), (pointed,) = (
        PortableMasker().segment(image, [box]),
        PortableMasker().segment(image, [box], points=[(blue,)]),
    )
    assert pointed.mask[85, 170]
    assert plain.mask.shape == pointed.mask.shape == (160, 240)
    # a point outside of its box changes nothing
    (outside,) = PortableMasker().segment(image, [box], points=[((5.0, 5.0),)])
    assert np.array_equal(outside.mask, plain.mask)

from __future__ import annotations

import cv2
import numpy as np
import pytest

from engine.core.geometry import Image
from segmentation import features


def poster(seed: int, *, height: int = 180, width: int = 240) -> Image:
    """A picture with many blobs and lines: something to recognise."""
    rng = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 230, np.uint8)
    for _ in range(45):
        x, y = int(rng.integers(0, width)), int(rng.integers(0, height))
        colour = tuple(int(value) for value in rng.integers(0, 255, 3))
        if rng.random() < 0.5:
            cv2.circle(pixels, (x, y), int(rng.integers(3, 18)), colour, -1)
        else:
            cv2.rectangle(pixels, (x, y), (x + int(rng.integers(5, 40)), y + int(rng.integers(5, 30))), colour, -1)
    return pixels


def placed(picture: Image, *, angle: float, zoom: float, mirror: bool) -> tuple[Image, np.ndarray]:  # type: ignore[type-arg]
    """A scene with the picture in it, and where its corners lie."""
    height, width = picture.shape[:2]
    turn = np.vstack([cv2.getRotationMatrix2D((width / 2, height / 2), angle, zoom), [0, 0, 1]])
    turn[:2, 2] += (400 - width / 2, 300 - height / 2)
    if mirror:
        turn = turn @ np.array([[-1.0, 0, width - 1], [0, 1, 0], [0, 0, 1]])
    scene = np.random.default_rng(7).normal(128, 12, (600, 800, 3)).clip(0, 255).astype(np.uint8)
    laid = cv2.warpPerspective(picture, turn, (800, 600))
    inside = cv2.warpPerspective(np.full((height, width), 255, np.uint8), turn, (800, 600)) > 127
    scene[inside] = laid[inside]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], float)
    return scene, (np.c_[corners, np.ones(4)] @ turn.T)[:, :2]


@pytest.mark.parametrize(
    ("angle", "zoom", "mirror"),
    [(0, 1.0, False), (20, 1.4, False), (-35, 0.6, False), (10, 1.1, True), (180, 0.9, False)],
)
def test_a_picture_is_found_where_it_was_put(angle: float, zoom: float, mirror: bool) -> None:
    picture = poster(1)
    scene, corners = placed(picture, angle=angle, zoom=zoom, mirror=mirror)
    match = features.find(picture, features.take(scene, side_px=features.SCENE_SIDE_PX))
    assert match is not None
    assert match.mirrored is mirror
    outline = np.array([[0, 0], [240, 0], [240, 180], [0, 180]], float)
    assert np.abs(match.place(outline) - corners).max() < 4.0
    box = features.placed_box(match, outline, 800, 600)
    assert abs(box.x1 - max(0, corners[:, 0].min())) < 4
    assert 0 < match.score <= 1


def test_another_picture_is_not_found() -> None:
    scene, _ = placed(poster(1), angle=5, zoom=1.0, mirror=False)
    found = features.take(scene, side_px=features.SCENE_SIDE_PX)
    assert features.find(poster(2), found) is None
    assert features.find(np.full((50, 60, 3), 127, np.uint8), found) is None


def test_another_colour_of_the_same_design_is_told_apart() -> None:
    picture = poster(1)
    hsv = cv2.cvtColor(picture, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(int) + 60) % 180
    turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    darker = (picture * 0.8).astype(np.uint8)
    grey = np.repeat(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    scene, _ = placed(picture, angle=8, zoom=1.1, mirror=False)
    found = features.take(scene, side_px=features.SCENE_SIDE_PX)
    agreement = {}
    for label, reference in (("same", picture), ("darker", darker), ("turned", turned), ("grey", grey)):
        match = features.find(reference, found)
        assert match is not None, label
        agreement[label] = features.colour_agreement(reference, scene, match)
    assert agreement["same"] > 0.9
    assert agreement["darker"] > 0.7
    assert agreement["turned"] < 0.3
    assert agreement["grey"] == 1.0  # says nothing


def test_likeness_of_a_crop() -> None:
    scene, corners = placed(poster(1), angle=5, zoom=1.0, mirror=False)
    x1, y1, x2, y2 = (int(value) for value in (*corners.min(axis=0), *corners.max(axis=0)))
    crop = np.ascontiguousarray(scene[y1:y2, x1:x2])
    assert features.similarity([poster(2), poster(1)], crop) > 0.9
    assert features.similarity([poster(2)], crop) == 0.0
    assert features.similarity([], crop) == 0.0


def test_tiny_pictures_have_no_features_and_do_not_fail() -> None:
    for height, width in ((1, 1), (2, 40), (40, 2)):
        taken = features.take(np.zeros((height, width, 3), np.uint8), side_px=400)
        assert len(taken.points) == len(taken.descriptors) == 0

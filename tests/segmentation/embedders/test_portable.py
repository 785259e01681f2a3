from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.geometry import Image
from segmentation.binding.likeness import prototype, similar
from segmentation.embedders.portable import PortableEmbedder

EMBEDDER = PortableEmbedder()


def ball(colour: tuple[int, int, int], *, size: int = 80, back: int = 128, stripes: int = 0) -> Image:
    ys, xs = np.mgrid[0:size, 0:size]
    pixels = np.full((size, size, 3), back, np.uint8)
    inside = (xs - size / 2) ** 2 + (ys - size / 2) ** 2 < (0.45 * size) ** 2
    pixels[inside] = colour
    if stripes:
        pixels[inside & (ys // stripes % 2 == 0)] = 20
    return pixels


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10_000))
def test_vectors_are_unit_and_depend_on_one_image_each(height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    alone, other = EMBEDDER.embed([image]), EMBEDDER.embed([ball((9, 9, 200)), image])
    assert alone.shape == (1, EMBEDDER.DIM)
    assert alone.dtype == np.float32
    assert np.linalg.norm(alone[0]) == pytest.approx(1.0, abs=1e-4)
    assert np.array_equal(alone[0], other[1])


def test_no_images_give_no_vectors() -> None:
    assert EMBEDDER.embed([]).shape == (0, EMBEDDER.DIM)


def test_likes_are_nearer_than_unlikes() -> None:
    red, dark, small = ball((200, 40, 40)), ball((170, 30, 30), back=150), ball((200, 40, 40), size=50)
    blue, striped = ball((40, 60, 200)), ball((40, 200, 60), stripes=8)
    vectors = EMBEDDER.embed([red, dark, small, blue, striped])
    near = vectors @ vectors.T
    assert min(near[0, 1], near[0, 2]) > 0.8
    assert max(near[0, 3], near[0, 4]) < 0.6
    assert min(near[0, 1], near[0, 2]) > max(near[0, 3], near[0, 4]) + 0.25


def test_a_stray_reference_does_not_move_the_prototype() -> None:
    reds = [ball((200, 40, 40)), ball((190, 45, 40), back=140), ball((180, 40, 50))]
    stray = ball((30, 60, 220), stripes=5)
    crop = ball((195, 42, 42), back=120)
    assert similar([*reds, stray], crop, embedder=EMBEDDER) == pytest.approx(
        similar(reds, crop, embedder=EMBEDDER), abs=1e-6
    )
    assert similar([], crop, embedder=EMBEDDER) == 0.0


def test_the_largest_cluster_wins_and_ties_take_the_first() -> None:
    eye = np.eye(3, dtype=np.float32)
    assert np.allclose(prototype(eye[[0, 1, 1, 2]]), eye[1])
    assert np.allclose(prototype(eye), eye[0])
    assert np.linalg.norm(prototype(eye[[0, 0]])) == pytest.approx(1.0)

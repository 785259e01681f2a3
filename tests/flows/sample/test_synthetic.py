"""The synthetic set used by tests of binding and ROSE is itself right: masks, places, captions, and the same again."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from support.synthetic import HEIGHT, WIDTH, Scene, scenes

pytestmark = pytest.mark.slow

SCENES = 20


@pytest.fixture(scope="module")
def drawn() -> list[Scene]:
    return list(scenes(SCENES, seed=11))


def test_more_than_three_entities_a_scene(drawn: list[Scene]) -> None:
    # so that 100 scenes hold at least 300
    assert sum(len(scene.entities) for scene in drawn) >= 3 * SCENES
    assert {len(scene.entities) for scene in drawn} >= {2, 3, 4, 5}


def test_every_hard_trait_is_there(drawn: list[Scene]) -> None:
    traits = Counter(trait for scene in drawn for trait in scene.traits)
    assert set(traits) == {"mirrored", "small", "cropped", "overlapping", "look-alike", "no place words"}
    assert any(scene.decoys for scene in drawn)


def test_masks_are_seen_and_disjoint(drawn: list[Scene]) -> None:
    for scene in drawn:
        assert scene.image.shape == (HEIGHT, WIDTH, 3)
        assert scene.image.dtype == np.uint8
        masks = [*(entity.mask for entity in scene.entities), *scene.decoys]
        for mask in masks:
            assert mask.shape == (HEIGHT, WIDTH)
            assert mask.dtype == np.bool_
            assert np.count_nonzero(mask) > 1000
        for one, two in itertools.combinations(masks, 2):
            assert not (one & two).any()


def test_captions_name_them_and_tell_true_places(drawn: list[Scene]) -> None:
    for scene in drawn:
        centers = {entity.name: float(np.flatnonzero(entity.mask.any(0)).mean()) for entity in scene.entities}
        others = [float(np.flatnonzero(mask.any(0)).mean()) for mask in scene.decoys]
        row = sorted([*centers.values(), *others])
        for entity in scene.entities:
            assert entity.name in scene.caption
            place, center = entity.position, centers[entity.name]
            if place in ("left", "far left"):
                assert center == row[0]
            elif place in ("right", "far right"):
                assert center == row[-1]
            elif place.endswith("from left"):
                assert center == row[("second", "third", "fourth").index(place.split()[0]) + 1]
            elif place.endswith("from right"):
                assert center == row[-2 - ("second", "third", "fourth").index(place.split()[0])]
            else:
                assert place in ("", "centre", "middle")
                assert place == "" or (len(row) == 3 and center == row[1])
        names = [scene.caption.index(entity.name) for entity in scene.entities]
        assert names == sorted(names)


def test_references_for_every_name(drawn: list[Scene]) -> None:
    for scene in drawn:
        assert set(scene.references) == {entity.name for entity in scene.entities}
        for pictures in scene.references.values():
            assert len(pictures) == 3
            assert all(picture.dtype == np.uint8 and picture.ndim == 3 for picture in pictures)


def test_the_same_seed_gives_the_same_pixels(drawn: list[Scene]) -> None:
    again = next(scenes(1, seed=11))
    assert np.array_equal(again.image, drawn[0].image)
    assert again.caption == drawn[0].caption
    assert [entity.name for entity in again.entities] == [entity.name for entity in drawn[0].entities]
    other = next(scenes(1, seed=12))
    assert not np.array_equal(other.image, drawn[0].image)

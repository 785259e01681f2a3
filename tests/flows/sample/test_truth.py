"""The sample's pictures, their known masks and references are complete and fit each other."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter

import imagehash
import numpy as np
import pytest
from PIL import Image as PilImage

from engine.core.geometry import mask_box
from engine.core.images import open_image
from flows.sample.articles import IMAGES
from flows.sample.config import LAST, REFERENCES
from flows.sample.truth import KnownEntity, known_entities, known_pairs, true_mask

ENTITIES = known_entities()


def _id(entity: KnownEntity) -> str:
    return f"{entity.scene}/{entity.slug}"


def test_enough_pictures_and_pairs() -> None:
    per_image = Counter(entity.image for entity in ENTITIES)
    names = {(entity.name, entity.type) for entity in ENTITIES}
    assert len(per_image) >= 12
    assert len(known_pairs()) == len(ENTITIES) >= 20
    assert set(per_image.values()) <= {1, 2, 3, 4}
    assert {name for name, kind in names if kind == "person"} == {"Eileen Collins", "Grace Hopper"}
    assert sum(kind == "product" for _, kind in names) >= 6


@pytest.mark.parametrize("entity", ENTITIES, ids=_id)
def test_mask_fits_the_upright_picture(entity: KnownEntity) -> None:
    data = (IMAGES / f"{entity.scene}.jpg").read_bytes()
    assert hashlib.sha256(data).hexdigest() == entity.image
    pixels = open_image(data).pixels
    mask = true_mask(entity.image, entity.name)
    assert mask is not None
    assert mask.dtype == np.bool_
    assert mask.shape == pixels.shape[:2] == (entity.height, entity.width)
    assert 0.02 < mask.mean() < 0.6
    with PilImage.open(entity.mask_path) as stored:
        assert set(np.unique(np.asarray(stored))) == {0, 255}


def test_masks_of_one_picture_do_not_overlap() -> None:
    by_image: dict[str, list[KnownEntity]] = {}
    for entity in ENTITIES:
        by_image.setdefault(entity.image, []).append(entity)
    for image, entities in by_image.items():
        masks = [true_mask(image, entity.name) for entity in entities]
        for one, two in itertools.combinations(masks, 2):
            assert one is not None
            assert two is not None
            assert not (one & two).any()


def test_caption_places_are_where_the_masks_are() -> None:
    for image in {entity.image for entity in ENTITIES}:
        placed = [entity for entity in ENTITIES if entity.image == image and entity.position]
        centers = []
        for entity in placed:
            mask = true_mask(image, entity.name)
            assert mask is not None
            box = mask_box(mask)
            assert box is not None
            centers.append(box.center[0])
        # captions name things from left to right
        assert centers == sorted(centers)
        if placed:
            assert placed[0].position == "left"
            assert placed[-1].position == "right"


def test_the_portrait_lies_on_its_side_and_comes_out_upright() -> None:
    entity = next(entity for entity in ENTITIES if entity.scene == "navy-portrait")
    path = IMAGES / "navy-portrait.jpg"
    with PilImage.open(path) as stored:
        assert stored.getexif()[0x0112] == 6
        assert stored.size == (entity.height, entity.width)
    assert open_image(path.read_bytes()).pixels.shape[:2] == (entity.height, entity.width)


def test_no_two_scenes_look_alike() -> None:
    hashes = {}
    for scene in {entity.scene for entity in ENTITIES}:
        pixels = open_image((IMAGES / f"{scene}.jpg").read_bytes()).pixels
        hashes[scene] = imagehash.phash(PilImage.fromarray(pixels))
    for one, two in itertools.combinations(sorted(hashes), 2):
        assert hashes[one] - hashes[two] > 10, (one, two)


def test_every_entity_has_references_that_are_no_scene() -> None:
    scenes = [
        imagehash.dhash(PilImage.fromarray(open_image((IMAGES / f"{scene}.jpg").read_bytes()).pixels))
        for scene in sorted({entity.scene for entity in ENTITIES})
    ]
    for name, kind, slug in {(entity.name, entity.type, entity.slug) for entity in ENTITIES}:
        names = json.loads((REFERENCES / slug / "names.json").read_text(encoding="utf-8"))
        assert (names["name"], names["type"]) == (name, kind)
        assert names["published"] <= LAST.isoformat()
        pictures = sorted((REFERENCES / slug).glob("*.jpg"))
        assert 2 <= len(pictures) <= 4
        for path in pictures:
            seen = imagehash.dhash(PilImage.fromarray(open_image(path.read_bytes()).pixels))
            assert min(seen - scene for scene in scenes) > 6, path


def test_unknown_pairs_have_no_truth() -> None:
    assert true_mask("0" * 64, "Eileen Collins") is None
    assert true_mask(ENTITIES[0].image, "Nobody At All") is None
    assert true_mask(ENTITIES[0].image, ENTITIES[0].name.upper()) is not None


def test_every_photograph_has_its_rights_stated() -> None:
    folder = IMAGES.parents[1] / "photos"
    rights = (folder / "RIGHTS.md").read_text(encoding="utf-8")
    photos = [path.name for path in folder.iterdir() if path.suffix in {".png", ".jpg"}]
    assert photos
    for name in photos:
        row = next(line for line in rights.splitlines() if line.startswith(f"| `{name}`"))
        assert "public domain" in row or "CC0" in row or "no known copyright" in row.lower()


def test_the_sample_stays_small() -> None:
    folder = IMAGES.parents[1]
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 12_000_000

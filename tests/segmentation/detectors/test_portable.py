from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ConfigError
from engine.core.geometry import Box, Image, mask_box
from engine.core.images import open_image
from engine.core.protocols import DetectRequest
from engine.core.store.files import sha256_file
from flows import sample
from segmentation.detectors.portable import PortableDetector, is_person, merged
from segmentation.detectors.portable_faces import FaceFinder
from segmentation.detectors.portable_things import foreground, outline_of
from segmentation.references import FolderReferences

WEEK = Path(sample.__file__).parent
DETECTOR = PortableDetector()
REFERENCES = FolderReferences(WEEK / "references")


def scene(name: str) -> Image:
    return open_image((WEEK / "site" / "images" / f"{name}.jpg").read_bytes()).pixels


def truth(name: str, entity: str) -> Box:
    mask = open_image((WEEK / "truth" / name / f"{entity}.png").read_bytes()).pixels[..., 0] > 127
    box = mask_box(mask)
    assert box is not None
    return box


def test_the_bundled_model_is_the_published_one() -> None:
    assert sha256_file(FaceFinder.FILE) == FaceFinder.SHA256
    assert FaceFinder.SHA256 in FaceFinder.FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert DETECTOR.model().weights_sha256 == FaceFinder.SHA256


def test_a_missing_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="face model"):
        FaceFinder(tmp_path / "gone.onnx").find(np.zeros((40, 40, 3), np.uint8))


def test_finds_people_as_a_whole() -> None:
    (found,) = DETECTOR.detect([DetectRequest(scene("firsts-exhibition"), ("person",))])
    assert len(found) == 2
    for entity in ("eileen-collins", "grace-hopper"):
        assert max(item.box.iou(truth("firsts-exhibition", entity)) for item in found) > 0.9
    assert found[0].score >= found[1].score


def test_finds_things_by_their_references_also_mirrored() -> None:
    pictures = REFERENCES.of("Vireo 12E")
    (found,) = DETECTOR.detect([DetectRequest(scene("park-ride"), ("bus",), {"bus": pictures})])
    (bus,) = found
    assert bus.phrase == "bus"
    assert bus.box.iou(truth("park-ride", "vireo-12e")) > 0.9


def test_each_phrase_gets_its_own_box() -> None:
    pictures = {"watch": REFERENCES.of("Tidewatch 4"), "console": REFERENCES.of("Playdeck Duo")}
    (found,) = DETECTOR.detect([DetectRequest(scene("fair-stand"), ("watch", "console"), pictures)])
    best = {item.phrase: item.box for item in reversed(found)}
    assert best["watch"].iou(truth("fair-stand", "tidewatch-4")) > 0.85
    assert best["console"].iou(truth("fair-stand", "playdeck-duo")) > 0.85


def test_look_alikes_are_found_beside_the_thing_itself() -> None:
    """The same camera twice, once in other colours: two candidates, the true one with the better score."""
    reference = REFERENCES.of("Merle X1")[0]
    height, width = reference.shape[:2]
    turned = np.ascontiguousarray(reference[..., [2, 0, 1]])  # red leather becomes green
    pixels = np.full((height + 80, 2 * width + 120, 3), (120, 125, 130), np.uint8)
    pixels[40 : 40 + height, 40 : 40 + width] = turned
    pixels[40 : 40 + height, 80 + width : 80 + 2 * width] = reference
    (found,) = DETECTOR.detect([DetectRequest(pixels, ("camera",), {"camera": REFERENCES.of("Merle X1")})])
    assert len(found) == 2
    assert found[0].box.center[0] > pixels.shape[1] / 2 > found[1].box.center[0]
    assert found[0].score > found[1].score + 0.2


def test_the_same_picture_gives_the_same_boxes_and_a_larger_one_scaled_ones() -> None:
    pixels = scene("medal-night")
    request = DetectRequest(pixels, ("person",))
    first, again = DETECTOR.detect([request])[0], PortableDetector().detect([request])[0]
    assert first == again
    larger = np.ascontiguousarray(pixels.repeat(2, axis=0).repeat(2, axis=1))
    twice = DETECTOR.detect([DetectRequest(larger, ("person",))])[0]
    for one, two in zip(sorted(first, key=lambda d: d.box.x1), sorted(twice, key=lambda d: d.box.x1), strict=True):
        assert Box(two.box.x1 / 2, two.box.y1 / 2, two.box.x2 / 2, two.box.y2 / 2).iou(one.box) > 0.9


def test_a_thing_without_references_gets_what_stands_out() -> None:
    pixels = np.full((200, 300, 3), (90, 110, 90), np.uint8)
    pixels[60:140, 180:260] = (210, 60, 40)
    (found,) = DETECTOR.detect([DetectRequest(pixels, ("kettle",))])
    assert found[0].box.iou(Box(180, 60, 260, 140)) > 0.7
    assert 0.35 <= found[0].score <= 0.6  # never as sure as a match


def test_an_empty_picture_has_nobody_and_nothing() -> None:
    flat = np.full((120, 160, 3), 90, np.uint8)
    assert DETECTOR.detect([DetectRequest(flat, ("person", "kettle"))]) == [[]]
    assert DETECTOR.detect([]) == []
    assert DETECTOR.faces(flat) == []


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("person", True),
        ("the women", True),
        ("man in a dark suit", True),
        ("prime minister", True),
        ("astronaut holding a flag", True),
        ("phone", False),
        ("speaker", False),
        ("person's phone", False),
        ("chair", False),
        ("", False),
    ],
)
def test_phrases_of_people_are_told_by_their_noun(phrase: str, expected: bool) -> None:
    assert is_person(phrase) is expected


def test_overlapping_boxes_of_one_object_become_one() -> None:
    boxes = [(Box(0, 0, 10, 10), 0.5), (Box(1, 0, 11, 10), 0.9), (Box(30, 0, 40, 10), 0.4)]
    assert merged(boxes) == [(Box(1, 0, 11, 10), 0.9), (Box(30, 0, 40, 10), 0.4)]


def test_a_plain_border_shows_where_a_reference_ends() -> None:
    picture = np.full((100, 140, 3), 245, np.uint8)
    picture[20:80, 30:90] = (40, 80, 160)
    mask = foreground(picture)
    assert mask is not None
    assert mask_box(mask) == Box(30, 20, 90, 80)
    outline = outline_of(picture)
    assert np.abs(outline.min(axis=0) - [30.5, 20.5]).max() <= 1.5
    assert np.abs(outline.max(axis=0) - [89.5, 79.5]).max() <= 1.5
    busy = np.random.default_rng(1).integers(0, 255, (60, 60, 3), dtype=np.uint8)
    assert foreground(busy) is None
    assert outline_of(busy).tolist() == [[0, 0], [60, 0], [60, 60], [0, 60]]

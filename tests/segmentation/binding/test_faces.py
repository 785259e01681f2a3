"""Face vectors as evidence: off unless asked for, clear about what lacks, and right about drawn people.

The network is a small random one made here: that it tells drawn faces apart is luck of its seed, that the right crops
of the right pictures reach it is what is tested.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.annotating import BoxMasker, KnownDetector, entity, question
from support.synthetic import references_of
from support.tiny_onnx import face_network

from engine.core.config import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.geometry import Box, Image
from engine.core.images import encode_png
from engine.core.schema import Annotation, Code, Rejected
from engine.core.store import BlobStore, sha256_file
from segmentation import annotate
from segmentation.annotate import AnnotateDeps
from segmentation.detectors.portable_faces import FaceFinder
from segmentation.embedders.faces import FaceVectors
from segmentation.registry import annotator_key, make_faces

ADA, BOB = "person-5", "person-28"
HEIGHT = 320


class Pictures:
    """References by name."""

    def __init__(self, **known: tuple[Image, ...]) -> None:
        self.known = known

    def of(self, name: str, *, aliases: object = ()) -> tuple[Image, ...]:
        return self.known.get(name, ())


def fitted(image: Image) -> Image:
    resized: Image = cv2.resize(image, (round(image.shape[1] * HEIGHT / image.shape[0]), HEIGHT))
    return resized


def scene(*keys: str) -> tuple[Image, list[Box]]:
    """People side by side, each as in the first of their reference pictures; a box for each."""
    parts = [fitted(references_of(key)[0]) for key in keys]
    edges = np.cumsum([0, *(part.shape[1] for part in parts)])
    boxes = [Box(float(a), 0.0, float(b), float(HEIGHT)) for a, b in itertools.pairwise(edges)]
    return np.concatenate(parts, axis=1), boxes


@pytest.fixture
def config(tmp_path: Path) -> AnnotateSection:
    return AnnotateSection(faces=True, face_weights=str(face_network(tmp_path / "faces.onnx", seed=3)))


def run(tmp_path: Path, config: AnnotateSection, *keys: str, faces: bool = True) -> list[Annotation | Rejected]:
    pixels, boxes = scene(*keys)
    blobs = BlobStore(tmp_path / "blobs")
    image = blobs.put(encode_png(pixels), "png")
    detector = KnownDetector({"person": [(box, 0.9) for box in boxes]})
    deps = AnnotateDeps(
        detector=detector,
        mask_model=BoxMasker(),
        blobs=blobs,
        references=Pictures(Ada=references_of(ADA)[1:], Bob=references_of(BOB)[1:]),
        faces=FaceVectors(config, weights_dir=tmp_path) if faces else None,
    )
    ada, bob = entity("Ada"), entity("Bob", order=1)
    asked = [question(ada, bob, images=[image]), question(bob, ada, images=[image])]
    told = config if faces else config.model_copy(update={"faces": False})
    return annotate.run(asked, told, deps=deps)


@pytest.mark.parametrize("keys", [(ADA, BOB), (BOB, ADA)])
def test_faces_name_the_right_box(tmp_path: Path, config: AnnotateSection, keys: tuple[str, ...]) -> None:
    """In both orders, so that it is not the habit of naming from the left."""
    found = run(tmp_path, config, *keys)
    for name, item in zip((ADA, BOB), found, strict=True):
        assert isinstance(item, Annotation), item
        binding = item.images[0].binding
        assert binding.candidate == keys.index(name)
        assert "face" in binding.rule
        scores = {told.candidate: told.score for told in binding.evidence if told.kind == "face"}
        assert max(scores, key=lambda index: scores[index]) == binding.candidate
    assert [model.role for model in found[0].models if model.name.startswith("sface")] == ["faces"]


def test_a_stranger_in_the_picture_leaves_names_unbound(tmp_path: Path, config: AnnotateSection) -> None:
    """A face alone is one kind of evidence; with three boxes for two names there is no second."""
    found = run(tmp_path, config, ADA, "person-49", BOB)
    for item in found:
        if isinstance(item, Annotation):
            assert len(item.images[0].binding.rule.split("+")) >= 2
        else:
            assert item.code in (Code.UNBOUND, Code.BINDING_TIE, Code.BINDING_DISAGREES)


def test_off_means_that_no_face_is_compared(tmp_path: Path, config: AnnotateSection) -> None:
    for item in run(tmp_path, config, ADA, BOB, faces=False):
        evidence = item.images[0].binding.evidence if isinstance(item, Annotation) else ()
        assert "face" not in {told.kind for told in evidence}


def test_off_by_default_and_in_no_key_then() -> None:
    plain = AnnotateSection(detector="portable", mask_model="portable")
    assert plain.faces is False
    assert make_faces(plain, weights_dir=Path("nowhere")) is None
    named = plain.model_copy(update={"face_weights": "some.onnx"})
    assert annotator_key(named) == annotator_key(plain)


def test_the_network_is_part_of_the_key(tmp_path: Path) -> None:
    keys = []
    for seed in (0, 1):
        path = face_network(tmp_path / f"{seed}.onnx", seed=seed)
        told = AnnotateSection(detector="portable", mask_model="portable", faces=True, face_weights=str(path))
        keys.append(annotator_key(told, weights_dir=tmp_path))
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"face_weights": ""}, "needs a network, and none comes with this package"),
        ({"face_weights": "gone.onnx"}, "there is no file"),
        ({"face_sha256": "0" * 64}, "face_sha256 asks for 0000"),
        ({"face_weights": "garbage.onnx"}, "no network that OpenCV's FaceRecognizerSF takes"),
        ({"face_weights": "empty.onnx"}, "no network that OpenCV's FaceRecognizerSF takes"),
    ],
)
def test_what_lacks_is_said(tmp_path: Path, config: AnnotateSection, change: dict[str, str], said: str) -> None:
    (tmp_path / "garbage.onnx").write_bytes(b"this is no network" * 50)
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(ConfigError, match=said):
        make_faces(config.model_copy(update=change), weights_dir=tmp_path)


def test_the_pinned_file_is_taken(tmp_path: Path, config: AnnotateSection) -> None:
    digest = sha256_file(Path(config.face_weights))
    made = make_faces(config.model_copy(update={"face_sha256": digest.upper()}), weights_dir=tmp_path)
    assert made is not None
    assert made.model().weights_sha256 == digest


def test_vectors_are_of_the_aligned_face(tmp_path: Path, config: AnnotateSection) -> None:
    """The same face farther off, tilted and in another place of a picture is nearly the same vector."""
    vectors = FaceVectors(config, weights_dir=tmp_path)
    image = references_of(ADA)[0]
    turn = cv2.getRotationMatrix2D((image.shape[1] / 2, image.shape[0] / 2), 12, 0.8)
    moved = cv2.warpAffine(image, turn, (image.shape[1], image.shape[0]), borderMode=cv2.BORDER_REFLECT)
    other = references_of(BOB)[0]
    found = [vectors.embed(one, [face])[0] for one in (image, moved, other) if (face := vectors.largest(one))]
    assert found[0] @ found[1] > 0.8
    assert found[0] @ found[1] > found[0] @ found[2]
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


def test_points_lie_where_a_face_has_them() -> None:
    (face,) = FaceFinder().find(references_of(ADA)[0])[:1]
    left, right, nose, mouth_left, mouth_right = face.points
    assert left[0] < nose[0] < right[0]
    assert max(left[1], right[1]) < nose[1] < min(mouth_left[1], mouth_right[1])
    assert all(face.box.x1 < x < face.box.x2 and face.box.y1 < y < face.box.y2 for x, y in face.points)


def test_a_face_outside_the_box_is_not_the_persons(tmp_path: Path, config: AnnotateSection) -> None:
    vectors = FaceVectors(config, weights_dir=tmp_path)
    pixels, boxes = scene(ADA, BOB)
    faces = [vectors.largest(pixels, within=box) for box in boxes]
    assert all(
        face is not None and box.x1 < face.box.center[0] < box.x2 for face, box in zip(faces, boxes, strict=True)
    )
    assert vectors.largest(pixels, within=Box(0, 300, 30, 320)) is None
    assert vectors.largest(np.zeros((64, 64, 3), np.uint8)) is None

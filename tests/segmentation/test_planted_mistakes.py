"""The usual mistakes, planted on purpose: each must push the comparison with the packages over its tolerance.

Without this, the equality tests could pass because tiny random models do not care what they are shown.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PilImage

pytest.importorskip("torch")
pytest.importorskip("groundingdino")
pytest.importorskip("segment_anything")

import torch
from support import tiny_models

from engine.core.geometry import Box
from engine.core.images import open_image
from engine.core.protocols import DetectRequest
from segmentation.detectors import boxes as box_geometry
from segmentation.detectors import groundingdino as dino_module
from segmentation.detectors.groundingdino import GroundingDino
from segmentation.mask_models import sam as sam_module
from segmentation.mask_models.sam import Sam

pytestmark = pytest.mark.gpu_extra
SHAPE = (180, 300)
IMAGE = tiny_models.picture(*SHAPE, seed=9)
BOXES = [Box(20, 15, 150, 160), Box(100, 60, 290, 175)]
#: The tolerance of the equality tests: share of a mask's pixels.
MASK_SHARE = 0.0005


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def sam(folder: Path) -> Sam:
    return Sam(tiny_models.tiny_config(folder), weights_dir=folder)


@pytest.fixture(scope="module")
def dino(folder: Path) -> GroundingDino:
    return GroundingDino(tiny_models.tiny_config(folder), weights_dir=folder)


def by_package(sam: Sam, image: np.ndarray) -> list[np.ndarray]:
    from segment_anything import SamPredictor

    predictor = SamPredictor(sam._network)
    predictor.set_image(image)
    found = []
    for box in BOXES:
        masks, quality, _ = predictor.predict(box=np.array([box.x1, box.y1, box.x2, box.y2]), multimask_output=True)
        found.append(masks[int(quality.argmax())])
    return found


def disagreement(sam: Sam, expected: list[np.ndarray], image: np.ndarray = IMAGE) -> float:
    masks = [found.mask for found in sam.segment(image, BOXES)]
    return max(float(np.mean(a != b)) for a, b in zip(masks, expected, strict=True))


def bgr(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sam_module.resized
    monkeypatch.setattr(sam_module, "resized", lambda image, **k: right(np.ascontiguousarray(image[..., ::-1]), **k))


def padding_left_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def straight(low: Any, height: int, width: int, **_: Any) -> Any:
        return torch.nn.functional.interpolate(low.float(), (height, width), mode="bilinear", align_corners=False)

    monkeypatch.setattr(sam_module, "full_size", straight)


def sizes_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sam_module.full_size

    def swapped(low: Any, height: int, width: int, **k: Any) -> Any:
        return torch.nn.functional.interpolate(right(low, width, height, **k), (height, width), mode="bilinear")

    monkeypatch.setattr(sam_module, "full_size", swapped)


def padded_before_normalising(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sam_module.resized

    def padded(image: np.ndarray, *, side: int) -> np.ndarray:
        small = right(image, side=side)
        return np.pad(small, ((0, side - small.shape[0]), (0, side - small.shape[1]), (0, 0)))

    monkeypatch.setattr(sam_module, "resized", padded)


def boxes_as_width_and_height(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sam_module.to_input_frame

    def wrong(corners: Any, *rest: Any, **k: Any) -> Any:
        x1, y1, x2, y2 = corners.T
        return right(np.stack([x1, y1, x2 - x1, y2 - y1], axis=1), *rest, **k)

    monkeypatch.setattr(sam_module, "to_input_frame", wrong)


def boxes_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sam_module, "to_input_frame", lambda corners, *_, **__: corners)


@pytest.mark.parametrize(
    "mistake",
    [
        bgr,
        padding_left_in,
        sizes_swapped,
        padded_before_normalising,
        boxes_as_width_and_height,
        boxes_not_scaled,
    ],
    ids=lambda f: f.__name__,
)
def test_a_mistake_with_masks_is_seen(
    sam: Sam, mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = by_package(sam, IMAGE)
    assert disagreement(sam, expected) <= MASK_SHARE
    mistake(monkeypatch)
    assert disagreement(sam, expected) > 10 * MASK_SHARE


def test_a_photo_that_is_not_turned_upright_is_seen(sam: Sam) -> None:
    exif = PilImage.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    PilImage.fromarray(IMAGE).save(out, "PNG", exif=exif)
    upright = open_image(out.getvalue()).pixels
    raw = np.asarray(PilImage.open(io.BytesIO(out.getvalue())).convert("RGB"))
    assert upright.shape[:2] == SHAPE[::-1]
    expected = by_package(sam, upright)
    assert disagreement(sam, expected, upright) <= MASK_SHARE
    # Lying pixels give a mask of another shape, or, for a square photo, another mask.
    assert raw.shape[:2] == SHAPE
    square = IMAGE[:, :180]
    turned = np.ascontiguousarray(np.rot90(square, 3))
    assert disagreement(sam, by_package(sam, turned), np.ascontiguousarray(square)) > 10 * MASK_SHARE


def test_a_mistake_with_boxes_is_seen(dino: GroundingDino, monkeypatch: pytest.MonkeyPatch) -> None:
    request = DetectRequest(IMAGE, ("A red square", "green circle", "dog"))
    raw = dino.raw([request])[0][0]
    right = dino_module.to_tensor
    monkeypatch.setattr(dino_module, "to_tensor", lambda image, size: right(image[..., ::-1].copy(), size))
    assert np.abs(dino.raw([request])[0][0].probabilities - raw.probabilities).max() > 1e-3
    monkeypatch.setattr(dino_module, "to_tensor", lambda image, size: right(image[:, ::-1].copy(), size))
    assert np.abs(dino.raw([request])[0][0].boxes - raw.boxes).max() > 1e-3

    def padded(images: Any) -> Any:
        from groundingdino.util.misc import nested_tensor_from_tensor_list

        neighbour = torch.zeros(3, images.shape[2] + 64, images.shape[3] + 64)
        both = nested_tensor_from_tensor_list([images[0], neighbour])
        return type(both)(both.tensors[:1], both.mask[:1])

    monkeypatch.setattr(dino_module, "to_tensor", right)
    monkeypatch.setattr(dino, "_samples", padded)
    # A neighbour of another size in the batch moves the numbers: why only images of one size share a pass.
    assert np.abs(dino.raw([request])[0][0].probabilities - raw.probabilities).max() > 1e-3


def test_width_and_height_are_not_exchanged() -> None:
    box = np.array([[0.5, 0.25, 0.5, 0.5]], np.float32)
    right = box_geometry.to_corners(box, width=600, height=400)
    assert right.tolist() == [[150, 0, 450, 200]]
    assert right.tolist() != box_geometry.to_corners(box, width=400, height=600).tolist()

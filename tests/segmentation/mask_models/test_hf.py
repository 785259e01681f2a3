from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PilImage

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from support import tiny_hf, tiny_models

from engine.core.errors import ConfigError
from engine.core.geometry import Box
from segmentation.mask_models.hf import HfSam

pytestmark = pytest.mark.gpu_extra
WRITERS = {"hf-sam": tiny_hf.write_sam, "hf-sam2": tiny_hf.write_sam2, "hf-sam3": tiny_hf.write_sam3_tracker}
SHAPES = ((180, 240), (240, 100), (64, 64), (401, 599))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hf")


@pytest.fixture(scope="module", params=sorted(WRITERS))
def model(request: pytest.FixtureRequest, root: Path) -> HfSam:
    folder = WRITERS[request.param](root / request.param)
    config = tiny_models.tiny_config(root, mask_model=request.param, mask_weights=str(folder))
    return HfSam(config, weights_dir=root)


def boxes_for(height: int, width: int) -> list[Box]:
    return [
        Box(0.1 * width, 0.15 * height, 0.62 * width, 0.8 * height),
        Box(0.4 * width, 0.3 * height, 0.97 * width, 0.99 * height),
    ]


def through_the_library(
    model: HfSam, image: np.ndarray, boxes: list[Box], points: list[list[float]] | None = None
) -> tuple[Any, Any]:
    """The library's own road: its processor, a whole forward pass, its post-processing; full-size logits."""
    import transformers

    processor_class, image_class = {
        "hf-sam": ("SamProcessor", "SamImageProcessor"),
        "hf-sam2": ("Sam2Processor", "Sam2ImageProcessor"),
        "hf-sam3": ("Sam3TrackerProcessor", "Sam3ImageProcessor"),
    }[model.name]
    sizes = {"size": {"height": model._side, "width": model._side}}
    if model.name == "hf-sam":
        sizes = {"size": {"longest_edge": model._side}, "pad_size": {"height": model._side, "width": model._side}}
    processor = getattr(transformers, processor_class)(getattr(transformers, image_class)(**sizes))
    rows = [[[b.x1, b.y1, b.x2, b.y2] for b in boxes]]
    # one list of points per box
    more = {} if points is None else {"input_points": [[points]], "input_labels": [[[1] * len(points)]]}
    inputs = processor(images=PilImage.fromarray(image), input_boxes=rows, return_tensors="pt", **more)
    with torch.inference_mode():
        pixels = inputs["pixel_values"].float()
        if model.name == "hf-sam":
            # The library resizes with torchvision where SAM itself does with PIL; that difference is not ours to test.
            from segmentation.mask_models.hf import _padded_pixels

            pixels = _padded_pixels(image, model._side)[None]
        given = {"input_boxes": inputs["input_boxes"].float()}
        if points is not None:
            given |= {"input_points": inputs["input_points"].float(), "input_labels": inputs["input_labels"]}
        answer = model._network(pixel_values=pixels, **given)
        extra = [inputs["reshaped_input_sizes"].tolist()] if model.name == "hf-sam" else []
        full = processor.post_process_masks(
            answer.pred_masks, inputs["original_sizes"].tolist(), *extra, binarize=False
        )
    return full[0], answer.iou_scores[0]


def test_points_beside_a_box_equal_the_librarys_own_road(model: HfSam) -> None:
    image, boxes = tiny_models.picture(180, 240, seed=6), boxes_for(180, 240)
    points = [[[60.0, 50.0], [90.0, 100.0]], [[150.0, 120.0]]]
    found = model.segment(image, boxes, points=[[(x, y) for x, y in own] for own in points])
    plain = model.segment(image, boxes)
    for row, box in enumerate(boxes):
        logits, quality = through_the_library(model, image, [box], points[row])
        best = int(quality[0].argmax())
        expected = (logits[0, best] > 0).numpy()
        assert np.count_nonzero(found[row].mask != expected) <= max(1, 0.001 * expected.size)
    assert any(not np.array_equal(one.mask, other.mask) for one, other in zip(found, plain, strict=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks_equal_the_librarys_own_road(model: HfSam, shape: tuple[int, int]) -> None:
    image, boxes = tiny_models.picture(*shape, seed=3), boxes_for(*shape)
    logits, quality = through_the_library(model, image, boxes)
    for row, found in enumerate(model.segment(image, boxes)):
        best = int(quality[row].argmax())
        expected = (logits[row, best] > 0).numpy()
        assert found.mask.shape == shape
        assert np.count_nonzero(found.mask != expected) <= max(1, 0.001 * expected.size)
        assert found.score == pytest.approx(min(1, max(0, float(quality[row, best]))), abs=1e-4)


def test_several_images_share_encodings_and_change_nothing(model: HfSam) -> None:
    items = [(tiny_models.picture(*shape, seed=1), boxes_for(*shape)) for shape in SHAPES[:3]]
    for (image, boxes), found in zip(items, model.segment_many(items), strict=True):
        for one, other in zip(model.segment(image, boxes), found, strict=True):
            assert np.count_nonzero(one.mask != other.mask) <= max(1, 0.0005 * one.mask.size)
    assert model.segment(items[0][0], []) == []


def test_the_model_says_what_it_is(model: HfSam) -> None:
    ref = model.model()
    assert ref.role == "mask_model"
    assert ref.name == f"{model.name}:{model.name}"
    assert len(ref.weights_sha256) == 64


def test_absent_and_foreign_folders_are_told(root: Path) -> None:
    config = tiny_models.tiny_config(root, mask_model="hf-sam2", mask_weights="")
    with pytest.raises(ConfigError, match=r"sam2\.1-hiera-large is not there: put the files of facebook/sam2\.1"):
        HfSam(config, weights_dir=root)
    with pytest.raises(ConfigError, match="use hf-sam, hf-sam2, hf-sam3"):
        HfSam(tiny_models.tiny_config(root), weights_dir=root)
    folder = WRITERS["hf-sam"](root / "hf-sam")
    with pytest.raises(ConfigError, match="hf-sam"):
        HfSam(tiny_models.tiny_config(root, mask_model="hf-sam2", mask_weights=str(folder)), weights_dir=root)

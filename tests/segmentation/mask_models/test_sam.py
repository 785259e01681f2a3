from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PilImage

pytest.importorskip("torch")
pytest.importorskip("segment_anything")

import torch
from support import tiny_models

from engine.core.errors import ConfigError
from engine.core.geometry import Box, mask_box, mask_iou
from segmentation import device
from segmentation.mask_models import sam_model
from segmentation.mask_models.prompted import stability
from segmentation.mask_models.sam import Sam

pytestmark = pytest.mark.gpu_extra
CASE = tiny_models.DATA / "cases/37-sam-lowres"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sam")


@pytest.fixture(scope="module")
def sam(folder: Path) -> Sam:
    return Sam(tiny_models.tiny_config(folder), weights_dir=folder)


@pytest.fixture(scope="module")
def predictor(sam: Sam) -> Any:
    from segment_anything import SamPredictor

    return SamPredictor(sam._network)


def boxes_for(height: int, width: int) -> list[Box]:
    return [
        Box(0.1 * width, 0.15 * height, 0.62 * width, 0.8 * height),
        Box(0.4 * width, 0.3 * height, 0.97 * width, 0.99 * height),
        Box(0, 0, width, height),
    ]


def one_by_one(predictor: Any, box: Box) -> tuple[np.ndarray, float]:
    masks, quality, _ = predictor.predict(box=np.array([box.x1, box.y1, box.x2, box.y2]), multimask_output=True)
    best = int(quality.argmax())
    return masks[best], float(quality[best])


@pytest.mark.parametrize("shape", tiny_models.SHAPES, ids=str)
def test_batched_boxes_equal_sam_predictor_box_by_box(sam: Sam, predictor: Any, shape: tuple[int, int]) -> None:
    image = tiny_models.picture(*shape, seed=sum(shape))
    boxes = boxes_for(*shape)
    predictor.set_image(image)
    for box, found in zip(boxes, sam.segment(image, boxes), strict=True):
        mask, quality = one_by_one(predictor, box)
        assert found.mask.shape == shape
        assert found.mask.dtype == np.bool_
        # A pixel whose logit is about 0 may fall to either side.
        assert np.count_nonzero(found.mask != mask) <= max(1, 0.0005 * mask.size)
        assert found.score == pytest.approx(min(1, max(0, quality)), abs=1e-4)


def test_points_beside_a_box_equal_sam_predictor(sam: Sam, predictor: Any) -> None:
    height, width = 180, 240
    image = tiny_models.picture(height, width, seed=9)
    boxes = boxes_for(height, width)
    points = [((60.0, 50.0),), ((150.5, 120.25), (200.0, 90.0)), ()]
    predictor.set_image(image)
    for box, own, found in zip(boxes, points, sam.segment(image, boxes, points=points), strict=True):
        given = {"point_coords": np.array(own), "point_labels": np.ones(len(own), int)} if own else {}
        masks, quality, _ = predictor.predict(
            box=np.array([box.x1, box.y1, box.x2, box.y2]), multimask_output=True, **given
        )
        best = int(quality.argmax())
        assert np.count_nonzero(found.mask != masks[best]) <= max(1, 0.0005 * found.mask.size)
        assert found.score == pytest.approx(min(1, max(0, float(quality[best]))), abs=1e-4)
    with pytest.raises(ValueError, match="2 lists of points for 3 boxes"):
        sam.segment(image, boxes, points=points[:2])


def test_logits_equal_the_vectors(folder: Path) -> None:
    sam = Sam(tiny_models.vector_config(folder), weights_dir=folder)
    expected = np.load(tiny_models.VECTORS / "sam_predictor/expected.npz")
    feature = sam._encoded([tiny_models.vector_image()])[0]
    lisa = np.load(tiny_models.VECTORS / "lisa/expected/shared.npz")
    np.testing.assert_allclose(feature[0].numpy(), lisa["sam_image_embedding"], atol=1e-4)
    prompts = sam_model.to_input_frame(expected["batch_boxes_xyxy"], 180, 240)
    np.testing.assert_allclose(prompts, expected["batch_boxes_transformed"], atol=1e-4)
    with torch.inference_mode():
        low, quality = sam._low_resolution(feature, prompts, three=False)
        np.testing.assert_allclose(low[:, 0, ::2, ::2].numpy(), expected["batch_low_res_sub2"], atol=1e-4)
        np.testing.assert_allclose(quality[:, 0].numpy(), expected["batch_iou"], atol=1e-4)
        prompt = sam_model.to_input_frame(expected["box_xyxy"][None], 180, 240)
        low, _ = sam._low_resolution(feature, prompt, three=False)
        full = sam_model.full_size(low, 180, 240)[0].numpy()
        np.testing.assert_allclose(full, expected["box_single_mask_logits"], atol=1e-4)
        low, quality = sam._low_resolution(feature, prompt)
        np.testing.assert_allclose(low[0, :, ::2, ::2].numpy(), expected["box_multi_low_res_sub2"], atol=1e-4)
        np.testing.assert_allclose(quality[0].numpy(), expected["box_multi_iou"], atol=1e-4)
        found = sam._decode(feature, prompt, 180, 240)[0]
        best = sam_model.full_size(low[:, 2:3], 180, 240)[0, 0].numpy()
    # The third guess, 1.378, is the best of the three and is cut to the scale.
    assert found.score == 1.0
    assert np.array_equal(found.mask, best > 0)


def test_case_37_padding_is_cut_off_before_the_image_size() -> None:
    stored = np.load(CASE / "sam_output.npz")
    expected = json.loads((CASE / "expected.json").read_text())
    low = next(stored[k] for k in stored if stored[k].shape == (3, 256, 256))
    scores = next(stored[k] for k in stored if stored[k].shape == (3,))
    assert int(scores.argmax()) == expected["best"]
    assert sam_model.input_size(400, 600) == tuple(expected["input_size"])
    logits = sam_model.full_size(torch.as_tensor(low, dtype=torch.float32)[None], 400, 600)[0, expected["best"]]
    mask = (logits > 0).numpy()
    right = np.asarray(PilImage.open(CASE / "expected_mask.png")) > 0
    assert mask.shape == right.shape
    assert mask_iou(mask, right) > 0.995
    assert int(mask.sum()) == pytest.approx(expected["area"], rel=0.005)
    box = mask_box(mask)
    assert box is not None
    assert [box.x1, box.y1, box.x2, box.y2] == pytest.approx(expected["bbox"], abs=1)


def test_the_image_is_encoded_once_however_many_boxes(sam: Sam, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    forward = sam._network.image_encoder.forward
    monkeypatch.setattr(sam._network.image_encoder, "forward", lambda x: (calls.append(x.shape[0]), forward(x))[1])
    image = tiny_models.vector_image()
    assert len(sam.segment(image, boxes_for(180, 240) * 30)) == 90
    assert calls == [1]
    calls.clear()
    assert sam.segment(image, []) == []
    assert calls == []


def test_several_images_give_what_each_gives_alone(sam: Sam) -> None:
    images = [tiny_models.picture(*shape, seed=1) for shape in ((180, 240), (240, 100), (64, 64))]
    items = [(image, boxes_for(*image.shape[:2])[: i + 1]) for i, image in enumerate(images)]
    items.insert(1, (images[0], []))
    together = sam.segment_many(items)
    assert [len(found) for found in together] == [1, 0, 2, 3]
    for (image, boxes), found in zip(items, together, strict=True):
        for one, other in zip(sam.segment(image, boxes), found, strict=True):
            assert np.count_nonzero(one.mask != other.mask) <= 0.0005 * one.mask.size


def test_out_of_memory_halves_the_boxes_and_changes_nothing(sam: Sam, monkeypatch: pytest.MonkeyPatch) -> None:
    image, boxes = tiny_models.vector_image(), boxes_for(180, 240) * 3
    before = sam.segment(image, boxes)
    decoder = sam._network.mask_decoder
    forward, sizes = decoder.forward, []

    def short_of_memory(**kwargs: Any) -> Any:
        sizes.append(len(kwargs["sparse_prompt_embeddings"]))
        if sizes[-1] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
        return forward(**kwargs)

    monkeypatch.setattr(decoder, "forward", short_of_memory)
    after = sam.segment(image, boxes)
    assert sizes == [9, 4, 2, 2, 2, 2, 1]
    assert all(np.array_equal(a.mask, b.mask) for a, b in zip(before, after, strict=True))
    monkeypatch.setattr(decoder, "forward", lambda **_: (_ for _ in ()).throw(torch.OutOfMemoryError("no")))
    with pytest.raises(device.OutOfMemory, match="single one of the boxes"):
        sam.segment(image, boxes[:1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_draws_nearly_the_same(sam: Sam, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image, boxes = tiny_models.vector_image(), boxes_for(180, 240)
    whole = sam.segment(image, boxes)
    # A config's number type is for cards only; here the same code runs on a CPU.
    monkeypatch.setattr(sam, "_dtype", dtype)
    for one, other in zip(whole, sam.segment(image, boxes), strict=True):
        assert np.count_nonzero(one.mask != other.mask) <= 0.02 * one.mask.size


def test_stability_is_the_overlap_of_two_cuts() -> None:
    logits = torch.tensor([[-3.0, -0.5, 0.5, 3.0, 2.0]])
    assert stability(logits) == pytest.approx(2 / 4)
    assert stability(torch.full((2, 2), -9.0)) == 0.0


def test_the_model_names_its_weights(sam: Sam) -> None:
    ref = sam.model()
    assert ref.role == "mask_model"
    assert ref.name == "sam:sam_tiny"
    assert "segment-anything 1.0" in ref.version
    assert len(ref.weights_sha256) == 64


def test_absent_weights_say_where_they_come_from(folder: Path) -> None:
    config = tiny_models.tiny_config(folder, mask_config="vit_h", mask_weights="")
    with pytest.raises(ConfigError, match=r"sam_vit_h_4b8939\.pth.*dl\.fbaipublicfiles\.com.*sha256 a7bf3b02"):
        Sam(config, weights_dir=folder)


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    small = json.loads((folder / "sam_tiny.json").read_text())
    for change in ({"encoder_depth": 5}, {"prompt_embed_dim": 64}):
        (folder / "other.json").write_text(json.dumps({**small, **change}))
        with pytest.raises(ConfigError, match="mask_config"):
            Sam(tiny_models.tiny_config(folder, mask_config=str(folder / "other.json")), weights_dir=folder)
    with pytest.raises(ConfigError, match="vit_b, vit_l, vit_h"):
        Sam(tiny_models.tiny_config(folder, mask_config="vit_x"), weights_dir=folder)

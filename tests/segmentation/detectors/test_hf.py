from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from support import tiny_hf, tiny_models

from engine.core.errors import ConfigError
from engine.core.protocols import DetectRequest
from segmentation.detectors.boxes import to_corners
from segmentation.detectors.groundingdino_image import shown_size, to_tensor
from segmentation.detectors.hf import HfGroundingDino

pytestmark = pytest.mark.gpu_extra
PHRASES = ("A red square", "green circle", "dog")
SHAPES = ((180, 240), (240, 180), (97, 333), (33, 33), (601, 400))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hf-dino")


@pytest.fixture(scope="module")
def dino(root: Path) -> HfGroundingDino:
    folder = tiny_hf.write_grounding_dino(root / "gdino")
    config = tiny_models.tiny_config(root, detector="hf-groundingdino", detector_weights=str(folder))
    return HfGroundingDino(config, weights_dir=root)


def library_post_process(threshold: float, text_threshold: float, **values: Any) -> list[dict[str, Any]]:
    """The library's post-processing under whichever argument names the installed version has."""
    from transformers import GroundingDinoProcessor

    function = GroundingDinoProcessor.post_process_grounded_object_detection
    names = inspect.signature(function).parameters
    box = "threshold" if "threshold" in names else "box_threshold"
    # The method needs of its object only the decoding of labels, which is not compared here.
    stand_in = type("Stand", (), {"batch_decode": staticmethod(lambda ids: ["?"] * len(ids))})()
    return function(stand_in, text_threshold=text_threshold, **{box: threshold}, **values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_boxes_equal_the_librarys_own_road(dino: HfGroundingDino, shape: tuple[int, int]) -> None:
    image = tiny_models.picture(*shape, seed=sum(shape))
    raw = dino.raw([DetectRequest(image, PHRASES)])[0][0]
    scores = raw.probabilities.max(axis=1)
    threshold = float(np.sort(scores)[5:7].mean())
    tensor = to_tensor(image, shown_size(*shape, short_side=160, long_side=266))
    text = dino._tokenizer([raw.caption.text], return_tensors="pt")
    with torch.inference_mode():
        answer = dino._network(pixel_values=tensor[None], **text)
    found = library_post_process(threshold, 0.3, outputs=answer, input_ids=text["input_ids"], target_sizes=[shape])[0]
    kept = scores > threshold
    assert kept.sum() == 6
    np.testing.assert_allclose(scores[kept], found["scores"].numpy(), atol=1e-5)
    ours = to_corners(raw.boxes[kept], width=shape[1], height=shape[0])
    limits = np.array([shape[1], shape[0]] * 2, np.float32)
    np.testing.assert_allclose(ours, found["boxes"].numpy().clip(0, limits), atol=1e-2)


def test_a_batch_gives_what_each_image_gives_alone(dino: HfGroundingDino) -> None:
    shapes = [(180, 240), (90, 120), (180, 240), (100, 100)]
    phrases = [PHRASES, ("dog",), ("tug boat", "ferry"), ("mayor",)]
    requests = [
        DetectRequest(tiny_models.picture(*shape, seed=i), words)
        for i, (shape, words) in enumerate(zip(shapes, phrases, strict=True))
    ]
    for request, raws in zip(requests, dino.raw(requests), strict=True):
        alone = dino.raw([request])[0]
        np.testing.assert_allclose(alone[0].probabilities, raws[0].probabilities, atol=5e-5)
        np.testing.assert_allclose(alone[0].boxes, raws[0].boxes, atol=5e-5)
    for request, found in zip(requests, dino.detect(requests), strict=True):
        assert {d.phrase for d in found} <= set(request.phrases)
        assert all(0 <= d.box.x1 < d.box.x2 <= request.image.shape[1] for d in found)


def test_strips_and_long_lists_are_taken(dino: HfGroundingDino) -> None:
    many = tuple(f"{a} {b} dog" for a in "abcdefghij" for b in "klmnopq")
    raws = dino.raw([DetectRequest(tiny_models.picture(7, 600), many)])[0]
    assert [p for raw in raws for p in raw.caption.phrases] == list(many)
    assert len(raws) == 2


def test_the_model_says_what_it_is(dino: HfGroundingDino, root: Path) -> None:
    ref = dino.model()
    assert (ref.role, ref.name) == ("detector", "hf-groundingdino:gdino")
    config = tiny_models.tiny_config(root, detector="hf-groundingdino", detector_weights="")
    with pytest.raises(ConfigError, match=r"grounding-dino-tiny is not there: put the files of IDEA-Research"):
        HfGroundingDino(config, weights_dir=root)
    folder = tiny_hf.write_sam(root / "a-sam")
    tiny_hf.write_tokenizer(folder)
    with pytest.raises(ConfigError, match="a-sam"):
        HfGroundingDino(
            tiny_models.tiny_config(root, detector="hf-groundingdino", detector_weights=str(folder)), weights_dir=root
        )

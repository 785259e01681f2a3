from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from support import tiny_hf, tiny_models

from engine.core.errors import ConfigError
from engine.core.protocols import Segmenter, SegmentRequest
from inference.segmenters.sam3 import Sam3

pytestmark = pytest.mark.gpu_extra
SHAPES = ((180, 240), (240, 100), (64, 64))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_hf.write_sam3(tmp_path_factory.mktemp("sam3") / "sam3")


@pytest.fixture(scope="module")
def sam3(folder: Path) -> Sam3:
    return Sam3(folder, device="cpu", threshold=0.0)


def through_the_library(sam3: Sam3, image: np.ndarray, phrase: str) -> dict[str, Any]:
    """The library's own road: a whole forward pass from pixels and text, its own post-processing."""
    text = sam3._tokenizer([phrase], return_tensors="pt", padding="max_length", max_length=32)
    pixels = sam3._pixels(images=[image], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        answer = sam3._network(pixel_values=pixels, input_ids=text["input_ids"], attention_mask=text["attention_mask"])
    shape = image.shape[:2]
    return sam3._pixels.post_process_instance_segmentation(answer, threshold=0.0, target_sizes=[shape])[0]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_surest_mask_equals_the_librarys_own_road(sam3: Sam3, shape: tuple[int, int]) -> None:
    image = tiny_models.picture(*shape, seed=2)
    expected = through_the_library(sam3, image, "red dog")
    best = int(expected["scores"].argmax())
    found = sam3.segment([SegmentRequest(image, "red dog")])[0]
    assert found.failure is None
    assert found.mask.shape == shape
    assert found.score == pytest.approx(float(expected["scores"][best]), abs=1e-5)
    mask = expected["masks"][best].numpy().astype(bool)
    assert np.count_nonzero(found.mask != mask) <= max(1, 0.001 * mask.size)


def test_every_thing_joined_and_the_picture_looked_at_once(sam3: Sam3, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tiny_models.picture(90, 120, seed=4)
    looks: list[Any] = []
    look = sam3._look
    monkeypatch.setattr(sam3, "_look", lambda pictures: (looks.extend(pictures), look(pictures))[1])
    monkeypatch.setattr(sam3, "_every", True)
    first, second, cut = sam3.segment([SegmentRequest(image, p) for p in ("dog", "cat", "dog " * 60)])
    assert len(looks) == 1
    expected = through_the_library(sam3, image, "dog")
    union = expected["masks"].numpy().astype(bool).any(axis=0)
    assert np.count_nonzero(first.mask != union) <= max(1, 0.001 * union.size)
    assert second.mask is not None
    assert cut.mask is not None


def test_a_batch_gives_what_each_gives_alone(sam3: Sam3) -> None:
    images = [tiny_models.picture(*shape, seed=5) for shape in SHAPES]
    asked = [SegmentRequest(image, phrase) for image in images for phrase in ("dog", "a red square")]
    together = sam3.segment(asked)
    for request, found in zip(asked, together, strict=True):
        (alone,) = sam3.segment([request])
        assert found.score == pytest.approx(alone.score, abs=1e-5)
        assert np.count_nonzero(found.mask != alone.mask) <= max(1, 0.001 * alone.mask.size)


def test_nothing_found_and_no_memory_are_failures_with_a_kind(sam3: Sam3, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tiny_models.picture(60, 80)
    assert isinstance(sam3, Segmenter)
    monkeypatch.setattr(sam3, "_threshold", 1.0)
    found = sam3.segment([SegmentRequest(image, "dog")])[0]
    assert found.mask is None
    assert found.failure is not None
    assert found.failure.kind == "no_box"
    assert "the threshold 1.0" in found.failure.detail
    monkeypatch.setattr(sam3, "_look", lambda _: (_ for _ in ()).throw(torch.OutOfMemoryError("CUDA out of memory")))
    short = sam3.segment([SegmentRequest(image, "dog")])[0]
    assert short.failure is not None
    assert short.failure.kind == "out_of_memory"


def test_an_absent_or_foreign_folder_is_told(sam3: Sam3, folder: Path, tmp_path: Path) -> None:
    ref = sam3.models()[0]
    assert (ref.role, ref.name) == ("segmenter", "sam3:sam3")
    assert "threshold 0.0" in ref.version
    with pytest.raises(ConfigError, match="holds no SAM 3: put"):
        Sam3(tmp_path)
    with pytest.raises(ConfigError, match="sam3"):
        Sam3(tiny_hf.write_sam(tmp_path / "sam"), device="cpu")

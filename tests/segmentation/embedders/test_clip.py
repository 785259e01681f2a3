from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from support import tiny_models

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from segmentation.embedders.clip import ClipEmbedder
from segmentation.embedders.clip_image import crop, pixel_values

pytestmark = pytest.mark.gpu_extra


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole tiny CLIP, text half included, as a published one is."""
    from transformers import CLIPConfig, CLIPModel

    path = tmp_path_factory.mktemp("weights") / "clip-tiny"
    torch.manual_seed(3)
    half = {
        "projection_dim": 24,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = CLIPConfig(
        text_config={**half, "vocab_size": 100, "max_position_embeddings": 16},
        vision_config={**half, "image_size": 56, "patch_size": 14},
        projection_dim=24,
    )
    CLIPModel(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def embedder(folder: Path) -> ClipEmbedder:
    config = AnnotateSection(embedder_weights=str(folder), device="cpu")
    return ClipEmbedder(config, weights_dir=folder.parent)


def test_vectors_are_unit_and_equal_transformers_own(embedder: ClipEmbedder, folder: Path) -> None:
    from transformers import CLIPModel

    images = [tiny_models.picture(*shape, seed=i) for i, shape in enumerate(tiny_models.SHAPES[:6])]
    vectors = embedder.embed(images)
    assert vectors.shape == (6, 24)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    model = CLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        pixels = torch.stack([pixel_values(image, side=56) for image in images])
        expected = model.get_image_features(pixel_values=pixels).pooler_output
        expected = torch.nn.functional.normalize(expected, dim=-1).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert embedder.embed([]).shape == (0, 24)


def test_alike_is_nearer_than_unlike_and_channels_matter(embedder: ClipEmbedder) -> None:
    image = tiny_models.picture(90, 120, seed=5)
    other = tiny_models.picture(90, 120, seed=6)[:, ::-1, ::-1]
    same, near, far = embedder.embed([image, (image * 0.98).astype(np.uint8), np.ascontiguousarray(other)])
    assert float(same @ near) > float(same @ far)


@pytest.mark.parametrize(("vectors", "side"), [("lisa", 224), ("sesame_read", 336)])
def test_the_crop_and_the_pixels_equal_the_vectors(vectors: str, side: int) -> None:
    name = "lisa/expected" if vectors == "lisa" else "sesame_read/expected_sesame"
    expected = np.load(tiny_models.VECTORS / name / "shared.npz")
    image = tiny_models.vector_image()
    np.testing.assert_array_equal(crop(image, side=side), expected["clip_image_uint8_hwc"])
    values = pixel_values(image, side=side)[:, ::4, ::4].numpy()
    np.testing.assert_allclose(values, expected["clip_pixel_values_sub4"], atol=1e-5)


def test_absent_weights_say_what_to_put_where(tmp_path: Path, embedder: ClipEmbedder) -> None:
    with pytest.raises(ConfigError, match=r"clip-vit-base-patch32 is not there: put the files of openai"):
        ClipEmbedder(AnnotateSection(device="cpu"), weights_dir=tmp_path)
    ref = embedder.model()
    assert (ref.role, ref.name) == ("embedder", "clip:clip-tiny")
    assert len(ref.weights_sha256) == 64

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PilImage

pytest.importorskip("torch")
pytest.importorskip("groundingdino")

import torch
from support import tiny_models

from engine.core.errors import ConfigError
from engine.core.protocols import DetectRequest
from segmentation import device
from segmentation.detectors.groundingdino import GroundingDino
from segmentation.detectors.groundingdino_image import padded_size, shown_size, to_tensor
from segmentation.detectors.groundingdino_model import forward_context, read_config
from segmentation.detectors.groundingdino_text import build_captions

pytestmark = pytest.mark.gpu_extra
PHRASES = ("A red square", "green circle", "dog")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dino")


@pytest.fixture(scope="module")
def dino(folder: Path) -> GroundingDino:
    return GroundingDino(tiny_models.tiny_config(folder), weights_dir=folder)


def package_predict(
    dino: GroundingDino, image: np.ndarray, caption: str, *, box: float
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """groundingdino-py's own transform and `predict`, one image and one caption at a time."""
    with forward_context(64):
        import groundingdino.datasets.transforms as transforms
        from groundingdino.util.inference import predict

        transform = transforms.Compose(
            [
                transforms.RandomResize([dino._sides[0]], max_size=dino._sides[1]),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )
        tensor, _ = transform(PilImage.fromarray(image), None)
        height, width = tensor.shape[1:]
        full = padded_size(height, width, queries=dino._queries)
        if full != (height, width):
            pytest.skip("the package itself cannot read strips as narrow as this")
        boxes, scores, phrases = predict(dino._network, tensor, caption, box, 0.3, device="cpu")
    return boxes.numpy(), scores.numpy(), phrases


def test_numbers_equal_the_vectors(folder: Path) -> None:
    import json

    meta = json.loads((tiny_models.VECTORS / "groundingdino/expected/meta.json").read_text())
    config = tiny_models.vector_config(
        folder, box_threshold=meta["box_threshold"], text_threshold=meta["text_threshold"], nms_iou=1.0
    )
    dino = GroundingDino(config, weights_dir=folder)
    expected = np.load(tiny_models.VECTORS / "groundingdino/expected/expected.npz")
    image = tiny_models.vector_image()
    tensor = to_tensor(image, shown_size(180, 240))
    assert list(tensor.shape) == meta["image_shape"]
    np.testing.assert_allclose(tensor[:, ::8, ::8].numpy(), expected["image_sub8"], atol=1e-5)
    seen: dict[str, Any] = {}
    hooks = [
        dino._network.bert.register_forward_hook(lambda m, i, o: seen.update(bert=o["last_hidden_state"])),
        dino._network.feat_map.register_forward_hook(lambda m, i, o: seen.update(text=o)),
    ]
    request = DetectRequest(image, PHRASES)
    raw = dino.raw([request])[0][0]
    for hook in hooks:
        hook.remove()
    np.testing.assert_allclose(seen["bert"].numpy(), expected["bert_last_hidden"], atol=1e-4)
    np.testing.assert_allclose(seen["text"].numpy(), expected["text_features"], atol=1e-4)
    logits = np.log(raw.probabilities / (1 - raw.probabilities))
    np.testing.assert_allclose(logits, expected["pred_logits"], atol=1e-3)
    np.testing.assert_allclose(raw.boxes, expected["pred_boxes"], atol=1e-4)
    kept = raw.probabilities.max(axis=1) > meta["box_threshold"]
    np.testing.assert_allclose(raw.boxes[kept], expected["predict_boxes"], atol=1e-4)
    np.testing.assert_allclose(raw.probabilities.max(axis=1)[kept], expected["predict_scores"], atol=1e-4)
    found = dino.detect([request])[0]
    # Whole phrases, where the package's decoding of single tokens gives "circle".
    assert {d.phrase for d in found} == {"green circle"}
    assert [d.score for d in found] == pytest.approx(
        sorted(expected["predict_scores"].tolist(), reverse=True), abs=1e-4
    )


@pytest.mark.parametrize("shape", tiny_models.SHAPES, ids=str)
def test_boxes_equal_the_packages_predict(dino: GroundingDino, shape: tuple[int, int]) -> None:
    image = tiny_models.picture(*shape, seed=sum(shape))
    raw = dino.raw([DetectRequest(image, PHRASES)])[0][0]
    ours = raw.probabilities.max(axis=1)
    # Between two scores, so that rounding decides nothing.
    threshold = float(np.sort(ours)[5:7].mean())
    boxes, scores, _ = package_predict(dino, image, raw.caption.text, box=threshold)
    kept = ours > threshold
    assert kept.sum() == 6
    np.testing.assert_allclose(raw.boxes[kept], boxes, atol=1e-5)
    np.testing.assert_allclose(ours[kept], scores, atol=1e-5)


def test_a_batch_gives_what_each_image_gives_alone(dino: GroundingDino, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(180, 240), (240, 180), (90, 120), (180, 240), (360, 480), (100, 100)]
    phrases = [PHRASES, ("dog",), ("green circle", "dog"), ("a red dog",), PHRASES, ("square",)]
    requests = [
        DetectRequest(tiny_models.picture(*shape, seed=i), words)
        for i, (shape, words) in enumerate(zip(shapes, phrases, strict=True))
    ]
    sizes: list[int] = []
    forward = dino._forward
    monkeypatch.setattr(dino, "_forward", lambda jobs: (sizes.append(len(jobs)), forward(jobs))[1])
    together = dino.raw(requests)
    # Four are shown at one size and share a pass; the others would need padding and go alone.
    assert sorted(sizes) == [1, 1, 4]
    for request, raws in zip(requests, together, strict=True):
        alone = dino.raw([request])[0]
        assert [r.caption for r in alone] == [r.caption for r in raws]
        np.testing.assert_allclose(alone[0].probabilities, raws[0].probabilities, atol=2e-5)
        np.testing.assert_allclose(alone[0].boxes, raws[0].boxes, atol=2e-5)
    assert dino.detect([]) == []


def test_long_lists_of_phrases_go_through_in_parts(dino: GroundingDino) -> None:
    image = tiny_models.picture(120, 160)
    many = tuple(f"{a} {b} dog" for a in "abcdefghij" for b in "klmnopq")
    raws = dino.raw([DetectRequest(image, many)])[0]
    assert len(raws) == 2
    assert [p for raw in raws for p in raw.caption.phrases] == list(many)
    for raw in raws:
        assert raw.probabilities.shape[1] <= 256
        assert all(raw.tokens)
    found = dino.detect([DetectRequest(image, many)])[0]
    assert [d.score for d in found] == sorted((d.score for d in found), reverse=True)
    assert {d.phrase for d in found} <= set(many)
    assert dino.detect([DetectRequest(image, ("...", ""))]) == [[]]


def test_narrow_strips_that_the_package_cannot_read_are_read(dino: GroundingDino) -> None:
    image = tiny_models.picture(6, 900)
    caption = build_captions(PHRASES, count_tokens=dino._count_tokens)[0][0].text
    height, width = shown_size(6, 900, short_side=200, long_side=333)
    assert (height, width) == (2, 300)
    assert padded_size(2, 333, queries=900) != (2, 333)
    found = dino.detect([DetectRequest(image, PHRASES)])[0]
    assert caption.startswith("a red square")
    for detection in found:
        assert 0 <= detection.box.x1 < detection.box.x2 <= 900
        assert 0 <= detection.box.y1 < detection.box.y2 <= 6


@pytest.mark.parametrize("shape", [(800, 1066), (801, 1400), (333, 5000), (1, 1), (7, 4096), (480, 480)])
def test_the_shown_size_is_the_packages(shape: tuple[int, int]) -> None:
    with forward_context(64):
        from groundingdino.datasets.transforms import resize

        small = PilImage.new("L", (shape[1], shape[0]))
        if min(shape) * 1333 // max(shape) == 0:
            # The package computes a side of no pixels there.
            assert min(shown_size(*shape)) == 1
            return
        width, height = resize(small, None, 800, 1333)[0].size
    assert shown_size(*shape) == (height, width)


def test_out_of_memory_halves_the_batch(dino: GroundingDino, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [DetectRequest(tiny_models.picture(60, 80, seed=i), ("dog",)) for i in range(4)]
    before = dino.detect(requests)
    forward, sizes = dino._forward, []

    def short_of_memory(jobs: Any) -> Any:
        sizes.append(len(jobs))
        if len(jobs) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(jobs)

    monkeypatch.setattr(dino, "_forward", short_of_memory)
    after = dino.detect(requests)
    assert sizes == [4, 2, 1, 1, 1, 1]
    for one, other in zip(before, after, strict=True):
        assert [d.phrase for d in one] == [d.phrase for d in other]
        assert [d.score for d in one] == pytest.approx([d.score for d in other], abs=2e-5)
    monkeypatch.setattr(dino, "_forward", lambda jobs: (_ for _ in ()).throw(torch.OutOfMemoryError("no")))
    with pytest.raises(device.OutOfMemory, match="single one of the images"):
        dino.detect(requests)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_finds_nearly_the_same(dino: GroundingDino, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = DetectRequest(tiny_models.vector_image(), PHRASES)
    whole = dino.raw([request])[0][0]
    # A config's number type is for cards only; here the same code runs on a CPU.
    monkeypatch.setattr(dino, "_dtype", dtype)
    half = dino.raw([request])[0][0]
    assert half.boxes.dtype == np.float32
    np.testing.assert_allclose(
        np.sort(half.probabilities.max(axis=1))[-3:], np.sort(whole.probabilities.max(axis=1))[-3:], atol=0.05
    )


def test_the_published_configs_are_read_without_being_run(tmp_path: Path) -> None:
    tiny, base = read_config("swin_t"), read_config("swin_b")
    assert tiny["backbone"] == "swin_T_224_1k"
    assert base["backbone"] == "swin_B_384_22k"
    assert (tiny["hidden_dim"], tiny["num_queries"], tiny["short_side"]) == (256, 900, 800)
    script = tmp_path / "own_cfg.py"
    script.write_text("import os\nos.mkdir('made')\nhidden_dim = 256\nnames = [1, 2]\n")
    assert read_config(str(script))["names"] == [1, 2]
    assert not Path("made").exists()
    for bad in ("swin_x", str(tmp_path)):
        with pytest.raises(ConfigError, match="swin_t, swin_b"):
            read_config(bad)


def test_absent_or_foreign_weights_are_told(folder: Path) -> None:
    config = tiny_models.tiny_config(folder, detector_config="swin_t", detector_weights="")
    with pytest.raises(ConfigError, match=r"groundingdino_swint_ogc\.pth.*3b3ca256"):
        GroundingDino(config, weights_dir=folder)
    sam = tiny_models.write_sam(folder)[0]
    with pytest.raises(ConfigError, match="don't fit its config"):
        GroundingDino(tiny_models.tiny_config(folder, detector_weights=str(sam)), weights_dir=folder)
    with pytest.raises(ConfigError, match="bert-base-uncased@86b5e09"):
        GroundingDino(tiny_models.tiny_config(folder, text_encoder="bert-base-uncased"), weights_dir=folder)


def test_the_model_names_its_weights(dino: GroundingDino) -> None:
    ref = dino.model()
    assert (ref.role, ref.name, ref.version) == ("detector", "groundingdino:dino_tiny", "groundingdino-py 0.4.0")
    assert len(ref.weights_sha256) == 64

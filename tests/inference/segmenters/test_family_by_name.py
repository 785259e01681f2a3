"""LISA, SESAME and READ made by their names from the config, alone and inside ROSE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.gpu_extra, pytest.mark.slow]

from support.blocks import BlockDetector, BlockMasker, ColourEmbedder  # noqa: E402
from support.slow_search import SlowSearch  # noqa: E402
from support.tiny_models import write_family  # noqa: E402

from engine.core.config import Config, RoseSection, ScoreSection  # noqa: E402
from engine.core.protocols import EvalItem  # noqa: E402
from inference import predict  # noqa: E402
from inference.segmenters.deps import InferenceDeps  # noqa: E402
from inference.segmenters.registry import make, segmenter_key  # noqa: E402

IMAGE = np.random.default_rng(5).integers(0, 256, (60, 90, 3), dtype=np.uint8)
ITEM = EvalItem("s1", "Which person in the image won the regatta?", (IMAGE,))


@pytest.mark.parametrize("name", ["lisa", "sesame", "read"])
async def test_each_runs_by_its_name_and_is_wrapped(name: str, tmp_path: Path) -> None:
    folder = write_family(tmp_path, "lisa" if name == "lisa" else "sesame_read")
    score = ScoreSection(weights={name: str(folder)}, device="cpu", options={name: {"max_new_tokens": 8}})
    config = Config(score=score, rose=RoseSection(answerer="extract"))
    deps = InferenceDeps(
        search=SlowSearch(latency_s=0.0),
        weights_dir=tmp_path,
        make_detector=lambda _: BlockDetector(),
        make_mask_model=lambda _: BlockMasker(),
        make_embedder=lambda _: ColourEmbedder(),
    )
    assert segmenter_key(name, config, weights_dir=tmp_path)["weights"]
    for full in (name, f"rose-irag-tpe:{name}"):
        runner = make(full, config, deps=deps)
        ((found,), _) = await predict.run([ITEM], config.score, deps=predict.PredictDeps(runner))
        asked = next(step.input for step in found.trace if step.module == "segmenter")
        assert asked.endswith("Please output segmentation mask.")
        assert ("Mara Quist is the person who won the regatta." in asked) == full.startswith("rose")
        assert (found.masks[0] is None) == (found.failures[0] is not None)
        assert found.models[0].weights_sha256

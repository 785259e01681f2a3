"""Real model code at toy size: random weights made for this project, so that results mean nothing but are exact.

The Grounding DINO is the one of `tests/data/vectors`; the SAM is the one inside its LISA checkpoint.
"""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Image

if importlib.util.find_spec("torch") is not None:
    import torch

    # Toy sizes cost more in waking threads than in computing, most of all with other tests beside them.
    torch.set_num_threads(1)

DATA = Path(__file__).parents[1] / "data"
VECTORS = DATA / "vectors"
#: (height, width): square, landscape, portrait, strips, odd, tiny, larger than any model's input.
SHAPES = (
    (180, 240),
    (240, 180),
    (128, 128),
    (97, 333),
    (400, 37),
    (33, 33),
    (600, 400),
    (401, 599),
    (768, 1024),
    (1200, 1600),
    (1601, 901),
    (50, 900),
)


def vector_image() -> Image:
    """The picture of the vectors, 180 high and 240 wide."""
    return np.asarray(PilImage.open(VECTORS / "image.png").convert("RGB"), np.uint8)


def picture(height: int, width: int, *, seed: int = 0) -> Image:
    """A picture with colour, edges and texture; all three channels differ, so that a swap of them shows."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    red = 200 * x / max(1, width - 1)
    green = 120 + 100 * np.sin(y / max(4.0, height / 9))
    blue = 40 + 30 * np.cos((x + y) / 17)
    image = np.stack([red, green, blue], axis=2) + rng.normal(0, 6, (height, width, 3))
    for _ in range(4):
        cy, cx = rng.uniform(0, height), rng.uniform(0, width)
        radius = rng.uniform(0.08, 0.25) * min(height, width)
        image[(y - cy) ** 2 + (x - cx) ** 2 < radius**2] = rng.uniform(0, 255, 3)
    return image.clip(0, 255).round().astype(np.uint8)


@lru_cache(maxsize=1)
def lisa_state() -> dict[str, Any]:
    """The tensors of the tiny LISA checkpoint as float32."""
    from safetensors.torch import load_file

    return {k: v.float() for k, v in load_file(VECTORS / "lisa/checkpoint/model.safetensors").items()}


def sam_state() -> dict[str, Any]:
    """The tiny SAM's tensors under segment-anything's names."""
    prefix = "model.visual_model."
    return {k.removeprefix(prefix): v for k, v in lisa_state().items() if k.startswith(prefix)}


def write_vector_sam(folder: Path) -> tuple[Path, Path]:
    """The vectors' SAM as (weights file, sizes file) in a folder; its input side is 1024."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights, sizes = folder / "sam_vectors.safetensors", folder / "sam_vectors.json"
    if not weights.exists():
        save_file({k: v.contiguous() for k, v in sam_state().items()}, weights)
        meta = json.loads((VECTORS / "sam_predictor/meta.json").read_text(encoding="utf-8"))
        sizes.write_text(json.dumps(meta["tiny_sam"]), encoding="utf-8")
    return weights, sizes


def write_sam(folder: Path) -> tuple[Path, Path]:
    """A seeded random SAM with an input side of 256, milliseconds per image, as (weights file, sizes file)."""
    import torch
    from safetensors.torch import save_file

    from segmentation.mask_models.sam_model import SamSizes, build_sam

    folder.mkdir(parents=True, exist_ok=True)
    weights, sizes = folder / "sam_tiny.safetensors", folder / "sam_tiny.json"
    if not weights.exists():
        meta = json.loads((VECTORS / "sam_predictor/meta.json").read_text(encoding="utf-8"))["tiny_sam"]
        meta["image_size"] = 256
        model = build_sam(SamSizes(**{k: tuple(v) if isinstance(v, list) else v for k, v in meta.items()}))
        generator = torch.Generator().manual_seed(7)
        state = {}
        for name, value in sorted(model.state_dict().items()):
            # Norm weights near one, everything else small: outputs then depend on the image and on the box.
            noise = torch.randn(value.shape, generator=generator)
            one = name.endswith("weight") and value.dim() == 1
            state[name] = (1 + 0.1 * noise if one else noise * 0.12).contiguous()
        state["prompt_encoder.pe_layer.positional_encoding_gaussian_matrix"] *= 8
        save_file(state, weights)
        sizes.write_text(json.dumps(meta), encoding="utf-8")
    return weights, sizes


def write_dino_config(folder: Path) -> Path:
    """The vectors' Grounding DINO config for images shown at a fourth of the usual side, which is 16 times faster."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "dino_tiny.json"
    raw = json.loads((VECTORS / "groundingdino/config.json").read_text(encoding="utf-8"))
    raw["groundingdino"] |= {"short_side": 200, "long_side": 333}
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


def tiny_config(folder: Path, **changes: Any) -> AnnotateSection:
    """An `[annotate]` section on tiny fast models: detector groundingdino, mask model sam, on the CPU."""
    weights, sizes = write_sam(folder)
    dino = VECTORS / "groundingdino"
    values: dict[str, Any] = {
        "detector": "groundingdino",
        "mask_model": "sam",
        "device": "cpu",
        "detector_config": str(write_dino_config(folder)),
        "detector_weights": str(dino / "model.safetensors"),
        "text_encoder": str(dino / "bert-tiny"),
        "mask_config": str(sizes),
        "mask_weights": str(weights),
        # Random weights give middling scores; these let about half of the boxes through.
        "box_threshold": 0.5,
        "text_threshold": 0.3,
    }
    return AnnotateSection(**{**values, **changes})


def vector_config(folder: Path, **changes: Any) -> AnnotateSection:
    """The same on the vectors' own sizes, for comparing with their numbers."""
    weights, sizes = write_vector_sam(folder)
    values = {
        "detector_config": str(VECTORS / "groundingdino/config.json"),
        "mask_config": str(sizes),
        "mask_weights": str(weights),
    }
    return tiny_config(folder, **{**values, **changes})


def write_family(folder: Path, name: str) -> Path:
    """The vectors' checkpoint of `lisa` or `sesame_read` with its image tower beside it; returns the checkpoint.

    SAM's sizes are written next to it, since a tiny decoder's heads cannot be read from its tensors.
    """
    import shutil

    checkpoint = folder / name / "checkpoint"
    if not checkpoint.exists():
        shutil.copytree(VECTORS / name / "checkpoint", checkpoint)
        tower = next((VECTORS / name).glob("clip-tiny-*"))
        shutil.copytree(tower, folder / name / tower.name)
        meta = json.loads((VECTORS / "sam_predictor/meta.json").read_text(encoding="utf-8"))
        (checkpoint / "sam_config.json").write_text(json.dumps(meta["tiny_sam"]), encoding="utf-8")
    return checkpoint

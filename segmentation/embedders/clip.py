"""CLIP image vectors through transformers: the evidence of likeness between crops and reference pictures.

Only the vision half is loaded. What a likeness means is decided by the binder.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Floats, Image
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.device import in_batches, inference, pick_device
from segmentation.embedders.clip_image import pixel_values
from segmentation.pretrained import load_pretrained, model_folder, model_label, require

#: The default model's folder in the weights folder, and its pinned place on the Hub.
FOLDER = "clip-vit-base-patch32"
HUB = "openai/clip-vit-base-patch32@3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"
BATCH = 32


class ClipEmbedder:
    """Embedder over CLIP's vision tower with projection. Raises `ConfigError` when the model's folder is absent."""

    name = "clip"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        require("embedder clip", "torch", "transformers")
        folder = model_folder(
            config.embedder_weights, weights_dir=weights_dir, setting="embedder_weights", default=FOLDER, hub=HUB
        )
        from transformers import CLIPVisionModelWithProjection

        self._device = pick_device(config.device)
        self._dtype = config.dtype if self._device.type != "cpu" else "float32"
        network = load_pretrained(CLIPVisionModelWithProjection, folder, "embedder_weights")
        self._network = network.eval().to(self._device)
        self._side = int(self._network.config.image_size)
        self._label = model_label(config.embedder_weights, folder)
        self._sha256 = weights.folder_digest(folder, weights_dir=weights_dir)

    def model(self) -> ModelRef:
        """Name, package version and digest of the weights."""
        return ModelRef(
            role="embedder",
            name=f"{self.name}:{self._label}",
            version=f"transformers {version('transformers')}",
            weights_sha256=self._sha256,
        )

    def embed(self, images: Sequence[Image]) -> Floats:
        """Unit vectors (N, D) float32, in order; shape (0, D) for no images."""
        rows = in_batches(images, self._forward, batch=BATCH)
        width = int(self._network.config.projection_dim)
        return np.stack(rows).astype(np.float32) if rows else np.zeros((0, width), np.float32)

    def _forward(self, images: Sequence[Image]) -> list[Floats]:
        import torch

        with inference(self._device, self._dtype):
            pixels = torch.stack([pixel_values(image, side=self._side) for image in images]).to(self._device)
            vectors = self._network(pixel_values=pixels).image_embeds.float()
            return list(torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy())

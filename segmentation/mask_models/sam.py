"""SAM through segment-anything: boxes to masks, the image encoded once however many boxes it has.

Of the three masks per box the one with the best predicted quality is taken, on the small logits, and only that one is
brought to full size. `SamPredictor` gives the same masks box by box. Which boxes are asked for is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.geometry import Box, Image
from engine.core.protocols import Segmentation
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.device import in_batches, inference, pick_device
from segmentation.mask_models.sam_model import full_size, load_sam, read_sizes, resized, to_input_frame

#: Boxes per decoder pass; the decoder is light, its full-size masks are made one by one.
BOXES = 64
#: Logit shift of the stability score (segment-anything's default for its automatic masks).
STABILITY_OFFSET = 1.0


class Sam:
    """Mask model over segment-anything (vit_b, vit_l, vit_h, or a file of sizes).

    Raises `ConfigError` when weights or config are absent or don't fit each other.
    """

    name = "sam"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        _require_packages()
        sizes = read_sizes(config.mask_config)
        path = weights.resolve_file(
            config.mask_weights,
            weights_dir=weights_dir,
            setting="mask_weights",
            published=weights.PUBLISHED.get(config.mask_config),
        )
        self._config = config
        self._side = sizes.image_size
        self._device = pick_device(config.device)
        self._dtype = config.dtype if self._device.type != "cpu" else "float32"
        self._network = load_sam(sizes, weights.load_state(path)).to(self._device)
        self._sha256 = weights.file_digest(path, weights_dir=weights_dir)

    def model(self) -> ModelRef:
        """Name, package version and digest of the weights."""
        label = self._config.mask_config
        return ModelRef(
            role="mask_model",
            name=f"{self.name}:{label if label in weights.PUBLISHED else Path(label).stem}",
            version=f"segment-anything {version('segment_anything')}",
            weights_sha256=self._sha256,
        )

    def segment(self, image: Image, boxes: Sequence[Box]) -> list[Segmentation]:
        """Masks (H, W) aligned with the boxes. Raises `OutOfMemory` when the image or one box does not fit."""
        return self.segment_many([(image, boxes)])[0]

    def segment_many(self, items: Sequence[tuple[Image, Sequence[Box]]]) -> list[list[Segmentation]]:
        """Like `segment` for several images, whose encodings share batches of `batch_images`."""
        wanted = [i for i, (_, boxes) in enumerate(items) if boxes]
        features = in_batches([items[i][0] for i in wanted], self._encode, batch=self._config.batch_images)
        out: list[list[Segmentation]] = [[] for _ in items]
        for index, feature in zip(wanted, features, strict=True):
            image, boxes = items[index]
            height, width = image.shape[:2]
            corners = np.array([[b.x1, b.y1, b.x2, b.y2] for b in boxes], np.float64)
            prompts = to_input_frame(corners, height, width, side=self._side)

            def decode(part: Sequence[Any], feature: Any = feature, size: tuple[int, int] = (height, width)) -> Any:
                return self._decode(feature, np.stack(part), *size)

            out[index] = in_batches(list(prompts), decode, batch=BOXES, what="boxes")
        return out

    def _encode(self, images: Sequence[Image]) -> Sequence[Any]:
        import torch

        with inference(self._device, self._dtype):
            batch = []
            for image in images:
                values = torch.from_numpy(resized(image, side=self._side)).to(self._device)
                batch.append(self._network.preprocess(values.permute(2, 0, 1)))
            return list(self._network.image_encoder(torch.stack(batch)).split(1))

    def _low_resolution(self, feature: Any, prompts: Any, *, three: bool = True) -> tuple[Any, Any]:
        """Logits (N, 3 or 1, h, w) over the padded square and quality guesses (N, 3 or 1) for boxes in SAM's frame."""
        import torch

        boxes = torch.as_tensor(prompts, dtype=torch.float32, device=self._device)
        sparse, dense = self._network.prompt_encoder(points=None, boxes=boxes, masks=None)
        low, quality = self._network.mask_decoder(
            image_embeddings=feature,
            image_pe=self._network.prompt_encoder.get_dense_pe(),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=three,
        )
        return low, quality.float()

    def _decode(self, feature: Any, prompts: Any, height: int, width: int) -> list[Segmentation]:
        with inference(self._device, self._dtype):
            low, quality = self._low_resolution(feature, prompts)
            found = []
            for row, column in enumerate(quality.argmax(dim=1).tolist()):
                logits = full_size(low[row : row + 1, column : column + 1], height, width, side=self._side)[0, 0]
                found.append(
                    Segmentation(
                        (logits > self._network.mask_threshold).cpu().numpy(),
                        min(1.0, max(0.0, float(quality[row, column]))),
                        stability(logits, self._network.mask_threshold),
                    )
                )
            return found


def stability(logits: Any, threshold: float, *, offset: float = STABILITY_OFFSET) -> float:
    """Overlap of the masks cut `offset` above and below the threshold, 0 to 1; 0.0 if both are empty."""
    small = int((logits > threshold + offset).sum())
    large = int((logits > threshold - offset).sum())
    return small / large if large else 0.0


def _require_packages() -> None:
    import importlib.util

    for package in ("torch", "torchvision", "segment_anything"):
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"mask model sam needs {package}: pip install 'nest-data-engine[gpu]'")

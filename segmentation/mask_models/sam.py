"""SAM through segment-anything: boxes to masks.

The network is the package's own code; `SamPredictor` gives the same masks box by box. Which boxes are asked for is
decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Image
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.device import pick_device
from segmentation.mask_models.prompted import BoxMaskModel
from segmentation.mask_models.sam_model import full_size, load_sam, read_sizes, resized, to_input_frame
from segmentation.pretrained import require


class Sam(BoxMaskModel):
    """Mask model over segment-anything (vit_b, vit_l, vit_h, or a file of sizes).

    Raises `ConfigError` when weights or config are absent or don't fit each other.
    """

    name = "sam"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        require("mask model sam", "torch", "torchvision", "segment_anything")
        sizes = read_sizes(config.mask_config)
        path = weights.resolve_file(
            config.mask_weights,
            weights_dir=weights_dir,
            setting="mask_weights",
            published=weights.PUBLISHED.get(config.mask_config),
        )
        super().__init__(config, device=pick_device(config.device))
        self._side = sizes.image_size
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

    def _encode(self, images: Sequence[Image]) -> Sequence[Any]:
        import torch

        batch = []
        for image in images:
            values = torch.from_numpy(resized(image, side=self._side)).to(self._device)
            batch.append(self._network.preprocess(values.permute(2, 0, 1)))
        return list(self._network.image_encoder(torch.stack(batch)).split(1))

    def _to_frame(self, corners: Any, height: int, width: int) -> Any:
        return to_input_frame(corners, height, width, side=self._side)

    def _low_resolution(self, feature: Any, prompts: Any, *, points: Any = None, three: bool = True) -> tuple[Any, Any]:
        import torch

        boxes = torch.as_tensor(prompts, dtype=torch.float32, device=self._device)
        placed = None
        if points is not None:
            where = torch.as_tensor(points, dtype=torch.float32, device=self._device)[None]
            placed = (where, torch.ones(where.shape[:2], dtype=torch.int64, device=self._device))
        sparse, dense = self._network.prompt_encoder(points=placed, boxes=boxes, masks=None)
        low, quality = self._network.mask_decoder(
            image_embeddings=feature,
            image_pe=self._network.prompt_encoder.get_dense_pe(),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=three,
        )
        return low, quality.float()

    def _full_size(self, low: Any, height: int, width: int) -> Any:
        return full_size(low, height, width, side=self._side)

"""SAM, SAM 2 and SAM 3 through transformers: boxes to masks, for folders in that library's layout.

The three differ in how an image is shown and in what covers the small logits: SAM keeps the proportions and pads, so
its logits cover the padded square; SAM 2 and SAM 3 stretch the image to the square. SAM 3 is used here as SAM 2 is,
with boxes (its interactive half); its half that takes phrases is a segmenter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.geometry import Image
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.device import pick_device
from segmentation.mask_models.prompted import BoxMaskModel
from segmentation.mask_models.sam_model import DEVIATION, MEAN, full_size, resized, to_input_frame
from segmentation.pretrained import load_pretrained, model_folder, model_label, require


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of the models: its class in transformers, default folder and pinned place, and whether it pads."""

    model: str
    folder: str
    hub: str
    pads: bool


KINDS = {
    "hf-sam": _Kind("SamModel", "sam-vit-huge", "facebook/sam-vit-huge@87aecf0df4ce6b30cd7de76e87673c49644bdf67", True),
    "hf-sam2": _Kind(
        "Sam2Model",
        "sam2.1-hiera-large",
        "facebook/sam2.1-hiera-large@665f8e2ad61cf5f53d65644ff27c8ee525124610",
        False,
    ),
    "hf-sam3": _Kind("Sam3TrackerModel", "sam3", "facebook/sam3@3c879f39826c281e95690f02c7821c4de09afae7", False),
}


class HfSam(BoxMaskModel):
    """Mask model over transformers; `mask_model` says which (hf-sam, hf-sam2, hf-sam3), `mask_weights` names a folder
    or owner/name@commit. Raises `ConfigError` when the folder is absent or holds another model."""

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        kind = KINDS.get(config.mask_model)
        if kind is None:
            raise ConfigError(f"mask_model = {config.mask_model!r}: use {', '.join(KINDS)}")
        require(f"mask model {config.mask_model}", "torch", "torchvision", "transformers")
        folder = model_folder(
            config.mask_weights, weights_dir=weights_dir, setting="mask_weights", default=kind.folder, hub=kind.hub
        )
        import transformers

        self.name = config.mask_model
        super().__init__(config, device=pick_device(config.device))
        network = load_pretrained(getattr(transformers, kind.model), folder, "mask_weights")
        self._network = network.eval().to(self._device)
        self._pads = kind.pads
        self._folder = folder
        if kind.pads:
            self._side = int(network.config.vision_config.image_size)
            self._processor = None
        else:
            self._processor = transformers.AutoImageProcessor.from_pretrained(folder, local_files_only=True)
            self._side = int(self._processor.size["height"])
        self._sha256 = weights.folder_digest(folder, weights_dir=weights_dir)

    def model(self) -> ModelRef:
        """Name, library version and digest of the weights."""
        return ModelRef(
            role="mask_model",
            name=f"{self.name}:{model_label(self._config.mask_weights, self._folder)}",
            version=f"transformers {version('transformers')}",
            weights_sha256=self._sha256,
        )

    def _encode(self, images: Sequence[Image]) -> Sequence[Any]:
        import torch

        if self._processor is None:
            pixels = torch.stack([_padded_pixels(image, self._side) for image in images])
        else:
            pixels = self._processor(images=list(images), return_tensors="pt")["pixel_values"]
        found = self._network.get_image_embeddings(pixels.to(self._device))
        if self._processor is None:
            return list(found.split(1))
        # SAM 2 and 3 give one map per level.
        return [[level[i : i + 1] for level in found] for i in range(len(images))]

    def _to_frame(self, corners: Any, height: int, width: int) -> Any:
        if self._pads:
            return to_input_frame(corners, height, width, side=self._side)
        values = np.asarray(corners, np.float64)
        return values * (np.array([1 / width, 1 / height] * (values.shape[-1] // 2)) * self._side)

    def _low_resolution(self, feature: Any, prompts: Any, *, points: Any = None) -> tuple[Any, Any]:
        import torch

        given = {"input_boxes": torch.as_tensor(prompts, dtype=torch.float32, device=self._device)[None]}
        if points is not None:
            where = torch.as_tensor(points, dtype=torch.float32, device=self._device)[None, None]
            given["input_points"] = where
            given["input_labels"] = torch.ones(where.shape[:3], dtype=torch.int64, device=self._device)
        answer = self._network(image_embeddings=feature, **given, multimask_output=True)
        return answer.pred_masks[0].float(), answer.iou_scores[0].float()

    def _full_size(self, low: Any, height: int, width: int) -> Any:
        from torch.nn.functional import interpolate

        if self._pads:
            return full_size(low, height, width, side=self._side)
        return interpolate(low.float(), (height, width), mode="bilinear", align_corners=False)


def _padded_pixels(image: Image, side: int) -> Any:
    """SAM's own input (3, side, side): PIL bilinear, normalised, then padded at the right and below."""
    import torch

    values = torch.from_numpy(resized(image, side=side)).permute(2, 0, 1).to(torch.float32)
    mean, deviation = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in (MEAN, DEVIATION))
    values = (values - mean) / deviation
    return torch.nn.functional.pad(values, (0, side - values.shape[2], 0, side - values.shape[1]))

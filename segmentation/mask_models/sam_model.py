"""SAM's geometry and its construction at any size: shared by the mask model and by segmenters that carry a SAM inside.

The network is segment-anything's own code. Published sizes go by their names; other sizes are read from a JSON file.
Resizing and the way back to full size are here as functions over plain arrays, so that they can be tested alone.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.errors import ConfigError
from engine.core.geometry import Image

#: SAM's input is a square of this side; its prompts live in that frame.
INPUT_SIDE = 1024
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


@dataclass(frozen=True, slots=True)
class SamSizes:
    """The numbers that make a SAM; the defaults are those that all published ones share."""

    encoder_embed_dim: int
    encoder_depth: int
    encoder_num_heads: int
    encoder_global_attn_indexes: tuple[int, ...]
    prompt_embed_dim: int = 256
    image_size: int = INPUT_SIDE
    vit_patch_size: int = 16
    window_size: int = 14
    mlp_ratio: float = 4
    decoder_depth: int = 2
    decoder_mlp_dim: int = 2048
    decoder_num_heads: int = 8
    num_multimask_outputs: int = 3
    iou_head_depth: int = 3
    iou_head_hidden_dim: int = 256


SIZES = {
    "vit_b": SamSizes(768, 12, 12, (2, 5, 8, 11)),
    "vit_l": SamSizes(1024, 24, 16, (5, 11, 17, 23)),
    "vit_h": SamSizes(1280, 32, 16, (7, 15, 23, 31)),
}


def read_sizes(name: str) -> SamSizes:
    """Sizes by name (vit_b, vit_l, vit_h) or from a JSON object in a file with the fields of `SamSizes`."""
    if name in SIZES:
        return SIZES[name]
    try:
        raw = json.loads(Path(name).expanduser().read_text(encoding="utf-8"))
        known = {f.name for f in fields(SamSizes)}
        found: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items() if k in known}
        return SamSizes(**found)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"mask_config = {name!r} cannot be read ({error}): use vit_b, vit_l, vit_h or a JSON file of sizes"
        ) from error


def build_sam(sizes: SamSizes) -> Any:
    """An untrained SAM of these sizes, in eval mode on the CPU."""
    import torch

    with warnings.catch_warnings():
        # torchvision and the package warn of each other's old imports.
        warnings.simplefilter("ignore")
        from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

    grid = sizes.image_size // sizes.vit_patch_size
    return Sam(
        image_encoder=ImageEncoderViT(
            depth=sizes.encoder_depth,
            embed_dim=sizes.encoder_embed_dim,
            img_size=sizes.image_size,
            mlp_ratio=sizes.mlp_ratio,
            norm_layer=partial(torch.nn.LayerNorm, eps=1e-6),
            num_heads=sizes.encoder_num_heads,
            patch_size=sizes.vit_patch_size,
            qkv_bias=True,
            use_rel_pos=True,
            global_attn_indexes=sizes.encoder_global_attn_indexes,
            window_size=sizes.window_size,
            out_chans=sizes.prompt_embed_dim,
        ),
        prompt_encoder=PromptEncoder(
            embed_dim=sizes.prompt_embed_dim,
            image_embedding_size=(grid, grid),
            input_image_size=(sizes.image_size, sizes.image_size),
            mask_in_chans=16,
        ),
        mask_decoder=MaskDecoder(
            num_multimask_outputs=sizes.num_multimask_outputs,
            transformer=TwoWayTransformer(
                depth=sizes.decoder_depth,
                embedding_dim=sizes.prompt_embed_dim,
                mlp_dim=sizes.decoder_mlp_dim,
                num_heads=sizes.decoder_num_heads,
            ),
            transformer_dim=sizes.prompt_embed_dim,
            iou_head_depth=sizes.iou_head_depth,
            iou_head_hidden_dim=sizes.iou_head_hidden_dim,
        ),
        pixel_mean=list(MEAN),
        pixel_std=list(DEVIATION),
    ).eval()


def load_sam(sizes: SamSizes, state: dict[str, Any], *, what: str = "mask_weights") -> Any:
    """A SAM with weights. Raises `ConfigError` when they don't fit the sizes."""
    model = build_sam(sizes)
    try:
        result = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        first = str(error).splitlines()[1:2]
        raise ConfigError(f"{what} and mask_config are of different sizes: {' '.join(first).strip()}") from error
    if result.missing_keys or result.unexpected_keys:
        raise ConfigError(
            f"{what} don't fit mask_config: {len(result.missing_keys)} names are missing (e.g. "
            f"{', '.join(result.missing_keys[:3]) or '-'}), {len(result.unexpected_keys)} are unknown (e.g. "
            f"{', '.join(result.unexpected_keys[:3]) or '-'})"
        )
    return model


def input_size(height: int, width: int, *, side: int = INPUT_SIDE) -> tuple[int, int]:
    """(height, width) of an image scaled so that its longer side is `side`, halves rounded up, at least one pixel."""
    scale = side / max(height, width)
    return max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5))


def resized(image: Image, *, side: int = INPUT_SIDE) -> Image:
    """An image at `input_size`, PIL bilinear on 8-bit values."""
    height, width = input_size(*image.shape[:2], side=side)
    picture = PilImage.fromarray(image)
    if picture.size != (width, height):
        picture = picture.resize((width, height), PilImage.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).copy()


def to_input_frame(boxes: Any, height: int, width: int, *, side: int = INPUT_SIDE) -> Any:
    """Corner boxes (N, 4), or points (N, 2), in image pixels to SAM's frame; numpy, float64."""
    new_height, new_width = input_size(height, width, side=side)
    factors = [new_width / width, new_height / height]
    values = np.asarray(boxes, np.float64)
    return values * np.array(factors * (values.shape[-1] // 2))


def full_size(low: Any, height: int, width: int, *, side: int = INPUT_SIDE) -> Any:
    """Low-resolution logits (N, C, h, w), which cover the padded square, to (N, C, height, width) of the image.

    Up to the square, the padding cut off, then to the image; both bilinear without aligned corners, in float32. Not
    thresholded.
    """
    from torch.nn.functional import interpolate

    new_height, new_width = input_size(height, width, side=side)
    square = interpolate(low.float(), (side, side), mode="bilinear", align_corners=False)
    return interpolate(square[..., :new_height, :new_width], (height, width), mode="bilinear", align_corners=False)

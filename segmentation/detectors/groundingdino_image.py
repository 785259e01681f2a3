"""The image side of Grounding DINO: the size it is shown at, and its normalised tensor.

The same arithmetic as groundingdino-py's loader (shorter side 800, longer at most 1333, PIL bilinear, ImageNet mean
and deviation), without its use of the global random generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Image

SHORT_SIDE = 800
LONG_SIDE = 1333
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
#: Pixels per cell of the four feature levels.
STRIDES = (8, 16, 32, 64)


def shown_size(height: int, width: int, *, short_side: int = SHORT_SIDE, long_side: int = LONG_SIDE) -> tuple[int, int]:
    """(height, width) at which the model sees an image: the shorter side `short_side`, or less where the longer one
    would be above `long_side`; at least one pixel."""
    short, long = float(min(height, width)), float(max(height, width))
    size = short_side
    if long / short * size > long_side:
        size = max(1, round(long_side * short / long))
    if min(height, width) == size:
        return height, width
    if width < height:
        return int(size * height / width), size
    return size, int(size * width / height)


def to_tensor(image: Image, size: tuple[int, int]) -> Any:
    """Upright RGB uint8 (H, W, 3) to a normalised float32 tensor (3, h, w) of `size`."""
    import torch

    height, width = size
    picture = PilImage.fromarray(image)
    if picture.size != (width, height):
        picture = picture.resize((width, height), PilImage.Resampling.BILINEAR)
    values = torch.from_numpy(np.asarray(picture, np.uint8).copy()).permute(2, 0, 1).to(torch.float32).div(255)
    mean, deviation = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in (MEAN, DEVIATION))
    return values.sub(mean).div(deviation)


def padded_size(height: int, width: int, *, queries: int) -> tuple[int, int]:
    """The size to which a narrow strip is padded, so that its feature cells are at least as many as the queries that
    the model picks among them; other sizes stay as they are."""
    while sum(-(-height // s) * -(-width // s) for s in STRIDES) < queries:
        if height <= width:
            height += STRIDES[-1]
        else:
            width += STRIDES[-1]
    return height, width

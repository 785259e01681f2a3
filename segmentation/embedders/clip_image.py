"""What CLIP's vision tower is shown: shorter side to the tower's size, centre crop, normalised.

The crop means that the ends of a long image are not seen. Used by the embedder and by segmenters with a CLIP inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Image

MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)


def crop(image: Image, *, side: int) -> Image:
    """The square that is seen, uint8 (side, side, 3): PIL bicubic, longer side truncated, crop to the centre."""
    height, width = image.shape[:2]
    if height < width:
        new_height, new_width = side, int(side * width / height)
    else:
        new_height, new_width = int(side * height / width), side
    picture = PilImage.fromarray(image)
    if picture.size != (new_width, new_height):
        picture = picture.resize((new_width, new_height), PilImage.Resampling.BICUBIC)
    top, left = (new_height - side) // 2, (new_width - side) // 2
    return np.asarray(picture, np.uint8)[top : top + side, left : left + side].copy()


def pixel_values(image: Image, *, side: int) -> Any:
    """Normalised float32 tensor (3, side, side)."""
    import torch

    values = torch.from_numpy(crop(image, side=side)).permute(2, 0, 1).to(torch.float32).div(255)
    mean, deviation = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in (MEAN, DEVIATION))
    return values.sub(mean).div(deviation)

"""Masks on disk: 8-bit PNG with 0 and 255, and COCO run-length encoding.

In memory a mask is a boolean array (H, W). The RLE counts are ASCII text, so that they go into JSON.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image as PilImage
from pycocotools import mask as coco

from engine.core.geometry import Mask
from engine.core.schema import Rle


def encode_rle(mask: Mask) -> Rle:
    """COCO RLE of a boolean mask (H, W)."""
    if mask.ndim != 2 or mask.dtype != np.bool_:
        raise ValueError(f"a mask is a boolean array (H, W), got {mask.dtype} {mask.shape}")
    raw = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return Rle(size=(int(mask.shape[0]), int(mask.shape[1])), counts=raw["counts"].decode("ascii"))


def decode_rle(rle: Rle) -> Mask:
    """Boolean mask (H, W). Raises ValueError for counts that do not fill the size."""
    try:
        decoded = coco.decode({"size": list(rle.size), "counts": rle.counts.encode("ascii")})
    except Exception as error:
        raise ValueError(f"run-length encoding of size {rle.size} cannot be decoded: {error}") from error
    mask = np.asarray(decoded, dtype=bool)
    if mask.shape != rle.size:
        raise ValueError(f"run-length encoding claims {rle.size}, decodes to {mask.shape}")
    return mask


def encode_png(mask: Mask) -> bytes:
    """8-bit grey PNG with 0 and 255; the same mask gives the same bytes for one Pillow version."""
    out = io.BytesIO()
    PilImage.fromarray(mask.astype(np.uint8) * 255, mode="L").save(out, "PNG", compress_level=6)
    return out.getvalue()

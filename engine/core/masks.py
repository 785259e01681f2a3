"""Masks on disk: 8-bit PNG with 0 and 255, and COCO run-length encoding.

In memory a mask is a boolean array (H, W). The RLE counts are ASCII text, so that they go into JSON.
"""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
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
    """Boolean mask (H, W). Raises ValueError for counts that are not an encoding of exactly that size.

    pycocotools decodes without looking at the size, and reads past its buffer for counts that do not fit; files
    come from other people, so the runs are checked here before pixels are made of them.
    """
    height, width = rle.size
    runs = rle_runs(rle)
    values = np.arange(runs.size) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, runs).reshape(width, height).T)


def rle_runs(rle: Rle) -> npt.NDArray[np.int64]:
    """Lengths of the runs down the columns, background first; they fill the size. Raises ValueError if not."""
    height, width = rle.size
    runs = _runs(rle.counts)
    if height < 0 or width < 0 or (runs < 0).any() or int(runs.sum()) != height * width:
        raise ValueError(f"run-length encoding does not fill {height}x{width} pixels")
    return runs


def _runs(counts: str) -> npt.NDArray[np.int64]:
    """Lengths of the alternating runs, background first.

    COCO's compression: characters from 48 on, five bits each, the sixth says that the number goes on, the last
    character's fifth bit is the sign; from the fourth run on, differences to the run two before.
    """
    try:
        codes = np.frombuffer(counts.encode("ascii"), dtype=np.uint8) - np.uint8(48)
    except UnicodeEncodeError as error:
        raise ValueError("run-length counts are not ASCII") from error
    if codes.size == 0:
        return np.zeros(0, dtype=np.int64)
    # a character before 48 wraps to more than 63
    if codes.max() > 63 or codes[-1] & 0x20:
        raise ValueError("run-length counts hold a character that does not belong there")
    ends = np.flatnonzero(codes < 0x20)
    lengths = np.empty_like(ends)
    lengths[0] = ends[0] + 1
    np.subtract(ends[1:], ends[:-1], out=lengths[1:])
    longest = int(lengths.max())
    if longest > 12:
        raise ValueError("run-length counts hold a number that is too large")
    # the last character has the highest bits and the sign
    deltas = (codes[ends].astype(np.int64) ^ 0x10) - 0x10
    for place in range(1, longest):
        more = np.flatnonzero(lengths > place)
        deltas[more] = (deltas[more] << 5) | (codes[ends[more] - place] & 0x1F)
    np.cumsum(deltas[1::2], out=deltas[1::2])
    np.cumsum(deltas[2::2], out=deltas[2::2])
    return deltas


def encode_png(mask: Mask) -> bytes:
    """8-bit grey PNG with 0 and 255; the same mask gives the same bytes for one Pillow version."""
    out = io.BytesIO()
    PilImage.fromarray(mask.astype(np.uint8) * 255, mode="L").save(out, "PNG", compress_level=6)
    return out.getvalue()

"""Bundled photographs as arrays, and subjects cut out of them along their outlines."""

from __future__ import annotations

import functools
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Floats, Image
from flows.sample.make.outlines import Outline

PHOTOS = Path(__file__).parents[1] / "photos"


@functools.cache
def photo(name: str) -> Image:
    """A bundled photograph, RGB uint8 (H, W, 3); do not write into it."""
    with PilImage.open(PHOTOS / name) as picture:
        return np.asarray(picture.convert("RGB"), np.uint8)


def cut_out(outline: Outline, *, inset: int = 1) -> Floats:
    """The subject as RGBA float32, cropped to its outline; `inset` pixels of the rim are given up, so that none of the
    old background shines through."""
    pixels = photo(outline.photo)
    alpha = outline.alpha(*pixels.shape[:2])
    if inset:
        alpha = cv2.erode(alpha, np.ones((3, 3), np.uint8), iterations=inset)
    alpha = cv2.GaussianBlur(alpha, (0, 0), 0.6)
    ys, xs = np.flatnonzero((alpha > 0.02).any(1)), np.flatnonzero((alpha > 0.02).any(0))
    rows, cols = slice(ys[0], ys[-1] + 1), slice(xs[0], xs[-1] + 1)
    return np.dstack([pixels[rows, cols].astype(np.float32), alpha[rows, cols]]).astype(np.float32)

"""Image vectors on a CPU without a network of weights: colour, shape and texture of a crop.

Good for telling a few things in one picture apart by their reference pictures, where colours and outlines differ; it
knows nothing of what things are, and nothing of faces. Each part is centred on what an average picture has, so that
unlike crops have a similarity near 0 rather than near 1.

- colour: histogram of hue and saturation with greys apart, square-rooted (Hellinger), weighted to the crop's middle;
- shape: histograms of oriented gradients on a 4x4 grid (Dalal and Triggs 2005);
- texture: uniform local binary patterns (Ojala et al. 2002), 10 bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.core.geometry import Floats, Image
from engine.core.schema import ModelRef

_SIDE_PX = 128
_WEIGHTS = {"colour": 0.65, "shape": 0.2, "texture": 0.15}
_CELLS, _ORIENTATIONS = 4, 9


class PortableEmbedder:
    """The portable `Embedder`: unit vectors of `DIM` numbers."""

    name = "portable"
    VERSION: ClassVar[str] = "1"
    DIM: ClassVar[int] = 12 * 4 + 6 + _CELLS * _CELLS * _ORIENTATIONS + 10

    def model(self) -> ModelRef:
        return ModelRef(role="embedder", name=self.name, version=self.VERSION)

    def embed(self, images: Sequence[Image]) -> Floats:
        """Vectors (N, DIM) float32 of upright RGB crops of any size."""
        if not images:
            return np.zeros((0, self.DIM), np.float32)
        return np.stack([_describe(image) for image in images]).astype(np.float32)


def _describe(image: Image) -> Floats:
    import cv2

    pixels = cv2.resize(np.ascontiguousarray(image), (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA)
    axis = np.linspace(-1.0, 1.0, _SIDE_PX, dtype=np.float32)
    # crops hold background at their corners: the middle counts most
    focus = np.exp(-(axis[None, :] ** 2 + axis[:, None] ** 2) / 0.5).astype(np.float32)
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    parts = {"colour": _colour(pixels, focus), "shape": _shape(grey), "texture": _texture(grey, focus)}
    vector = np.concatenate([np.sqrt(_WEIGHTS[name]) * _unit(part) for name, part in parts.items()])
    return np.asarray(_unit(vector), np.float32)


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length > 1e-9 else vector, np.float32)


def _colour(pixels: Image, focus: Floats) -> Floats:
    """12 hues x 4 saturations of coloured pixels, 6 brightnesses of grey ones; soft in hue."""
    import cv2

    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV).astype(np.float32)
    hue, saturation, value = hsv[..., 0] / 15.0, hsv[..., 1] / 255.0, hsv[..., 2] / 255.0
    chroma = saturation * value
    coloured = np.clip((chroma - 0.08) / 0.1, 0.0, 1.0)
    level = np.minimum((saturation * 4).astype(int), 3)
    low = np.floor(hue - 0.5).astype(int)
    share = hue - 0.5 - low
    histogram: Any = np.zeros(12 * 4, np.float64)
    for offset, part in ((0, 1.0 - share), (1, share)):
        cells = ((low + offset) % 12) * 4 + level
        histogram += np.bincount(cells.ravel(), (focus * coloured * part).ravel(), minlength=12 * 4)
    bright = np.minimum((value * 6).astype(int), 5)
    greys = np.bincount(bright.ravel(), (focus * (1.0 - coloured)).ravel(), minlength=6)
    both = np.concatenate([histogram, greys])
    rooted = np.sqrt(both / max(1e-9, float(both.sum())))
    # an average picture's colours spread thinly over all cells; what is more than that is told
    return np.asarray(rooted - 0.35 * rooted.mean(), np.float32)


def _shape(grey: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Floats:
    import cv2

    soft = cv2.GaussianBlur(grey, (0, 0), 1.0).astype(np.float32)
    dx, dy = cv2.Sobel(soft, cv2.CV_32F, 1, 0), cv2.Sobel(soft, cv2.CV_32F, 0, 1)
    strength = np.sqrt(np.sqrt(dx * dx + dy * dy))
    angle = np.mod(np.arctan2(dy, dx), np.pi) / np.pi * _ORIENTATIONS
    bins = np.minimum(angle.astype(int), _ORIENTATIONS - 1)
    cell = _SIDE_PX // _CELLS
    rows: list[Any] = []
    for top in range(0, _SIDE_PX, cell):
        for left in range(0, _SIDE_PX, cell):
            part = np.s_[top : top + cell, left : left + cell]
            rows.append(np.bincount(bins[part].ravel(), strength[part].ravel(), minlength=_ORIENTATIONS))
    counts = np.array(rows)
    grid = counts / max(1e-9, float(counts.sum()))
    return np.asarray((grid - grid.mean()).ravel(), np.float32)


def _texture(grey: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], focus: Floats) -> Floats:
    values = grey.astype(np.int16)
    middle = values[1:-1, 1:-1]
    around = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    side = values.shape[0]
    # a small dead zone, so that smooth areas count as flat rather than as noise
    bits = np.stack([values[y : y + side - 2, x : x + side - 2] >= middle + 3 for y, x in around])
    changes = (bits != np.roll(bits, 1, axis=0)).sum(axis=0)
    ones = bits.sum(axis=0)
    codes = np.where(changes <= 2, ones, 9)
    histogram = np.bincount(codes.ravel(), focus[1:-1, 1:-1].ravel(), minlength=10)
    rooted = np.sqrt(histogram / max(1e-9, float(histogram.sum())))
    return np.asarray(rooted - rooted.mean(), np.float32)

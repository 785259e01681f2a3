"""A small drawing board with supersampling: shapes filled with colours, gradients or pictures.

Coordinates are in final pixels; everything is drawn `SCALE` times larger and reduced once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from PIL import Image as PilImage
from PIL import ImageDraw

from engine.core.geometry import Floats

SCALE = 3
Colour = tuple[float, float, float]


def noise(height: int, width: int, *, cell: int, rng: np.random.Generator, octaves: int = 4) -> Floats:
    """Fractal noise in 0..1, shape (H, W); `cell` is the size in pixels of the coarsest grain."""
    total = np.zeros((height, width), np.float32)
    weight = 1.0
    for octave in range(octaves):
        step = max(1, cell >> octave)
        grid = rng.random((height // step + 3, width // step + 3), np.float32)
        grown = cv2.resize(grid, None, fx=step, fy=step, interpolation=cv2.INTER_CUBIC)[:height, :width]
        total += weight * grown
        weight *= 0.5
    low, high = float(total.min()), float(total.max())
    return np.asarray((total - low) / max(high - low, 1e-6), np.float32)


def ramp(height: int, width: int, first: Colour, last: Colour, *, angle: float = 90.0) -> Floats:
    """Linear gradient (H, W, 3) from `first` to `last`; 0 degrees runs to the right, 90 down."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    a = np.deg2rad(angle)
    t = x / max(width - 1, 1) * np.cos(a) + y / max(height - 1, 1) * np.sin(a)
    t = (t - t.min()) / max(float(t.max() - t.min()), 1e-6)
    return np.asarray(t[..., None] * np.array(last) + (1 - t[..., None]) * np.array(first), np.float32)


class Canvas:
    """An RGBA picture that is drawn shape by shape."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rgb = np.zeros((height * SCALE, width * SCALE, 3), np.float32)
        self._alpha = np.zeros((height * SCALE, width * SCALE), np.float32)

    def _stencil(self, kind: str, points: Sequence[float], *, radius: float = 0.0, line: float = 0.0) -> Floats:
        sheet = PilImage.new("L", (self.width * SCALE, self.height * SCALE), 0)
        draw = ImageDraw.Draw(sheet)
        scaled = [p * SCALE for p in points]
        stroke = max(1, round(line * SCALE))
        if kind == "box":
            draw.rounded_rectangle(scaled, radius * SCALE, fill=255)
        elif kind == "oval":
            draw.ellipse(scaled, fill=255)
        elif kind == "ring":
            draw.ellipse(scaled, outline=255, width=stroke)
        elif kind == "poly":
            draw.polygon(scaled, fill=255)
        else:
            draw.line(scaled, fill=255, width=stroke, joint="curve")
        return np.asarray(np.asarray(sheet) / 255.0, np.float32)

    def _fill(self, stencil: Floats, fill: Colour | Floats, opacity: float) -> None:
        ys, xs = np.flatnonzero(stencil.any(1)), np.flatnonzero(stencil.any(0))
        if not ys.size:
            return
        rows, cols = slice(ys[0], ys[-1] + 1), slice(xs[0], xs[-1] + 1)
        cover = stencil[rows, cols] * opacity
        if isinstance(fill, tuple):
            paint = np.broadcast_to(np.array(fill, np.float32), (*cover.shape, 3))
        else:
            paint = cv2.resize(fill, (cover.shape[1], cover.shape[0]), interpolation=cv2.INTER_LINEAR)
        self._rgb[rows, cols] = self._rgb[rows, cols] * (1 - cover[..., None]) + paint * cover[..., None]
        self._alpha[rows, cols] = np.maximum(self._alpha[rows, cols], cover)

    def box(
        self, x1: float, y1: float, x2: float, y2: float, fill: Colour | Floats, *, r: float = 0, o: float = 1
    ) -> None:
        """A rectangle with corners of radius `r` and opacity `o`."""
        self._fill(self._stencil("box", (x1, y1, x2, y2), radius=r), fill, o)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Colour | Floats, *, o: float = 1) -> None:
        """An ellipse around (x, y)."""
        self._fill(self._stencil("oval", (x - rx, y - ry, x + rx, y + ry)), fill, o)

    def ring(
        self, x: float, y: float, rx: float, ry: float, fill: Colour | Floats, *, line: float, o: float = 1
    ) -> None:
        """The outline of an ellipse, `line` pixels thick, inside its box."""
        self._fill(self._stencil("ring", (x - rx, y - ry, x + rx, y + ry), line=line), fill, o)

    def poly(self, points: Sequence[tuple[float, float]], fill: Colour | Floats, *, o: float = 1) -> None:
        """A filled polygon."""
        self._fill(self._stencil("poly", [v for p in points for v in p]), fill, o)

    def line(self, points: Sequence[tuple[float, float]], fill: Colour, *, w: float = 2, o: float = 1) -> None:
        """A line through the points, `w` pixels wide."""
        self._fill(self._stencil("line", [v for p in points for v in p], line=w), fill, o)

    def grain(self, amount: float, *, rng: np.random.Generator, cell: int = 4) -> None:
        """Roughen everything drawn so far by `amount` grey levels."""
        height, width = self._alpha.shape
        self._rgb += (noise(height, width, cell=cell * SCALE, rng=rng, octaves=3)[..., None] - 0.5) * 2 * amount

    def picture(self) -> Floats:
        """RGBA (H, W, 4), colours 0..255, alpha 0..1, not premultiplied."""
        size = (self.width, self.height)
        alpha = cv2.resize(self._alpha, size, interpolation=cv2.INTER_AREA)
        rgb = cv2.resize(self._rgb * self._alpha[..., None], size, interpolation=cv2.INTER_AREA)
        rgb = rgb / np.maximum(alpha, 1e-3)[..., None]
        return np.dstack([np.clip(rgb, 0, 255), alpha]).astype(np.float32)

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

    def _draw(
        self,
        kind: str,
        points: Sequence[float],
        fill: Colour | Floats,
        opacity: float,
        *,
        radius: float = 0.0,
        line: float = 0.0,
    ) -> None:
        """Draw a shape on a small sheet around it, then lay that on the picture."""
        scaled = [p * SCALE for p in points]
        stroke = max(1, round(line * SCALE))
        height, width = self._alpha.shape
        left, right = int(min(scaled[::2])) - stroke - 2, int(max(scaled[::2])) + stroke + 3
        top, bottom = int(min(scaled[1::2])) - stroke - 2, int(max(scaled[1::2])) + stroke + 3
        left, right, top, bottom = max(left, 0), min(right, width), max(top, 0), min(bottom, height)
        if left >= right or top >= bottom:
            return
        moved = [p - (left, top)[k % 2] for k, p in enumerate(scaled)]
        sheet = PilImage.new("L", (right - left, bottom - top), 0)
        draw = ImageDraw.Draw(sheet)
        if kind == "box":
            draw.rounded_rectangle(moved, radius * SCALE, fill=255)
        elif kind == "oval":
            draw.ellipse(moved, fill=255)
        elif kind == "ring":
            draw.ellipse(moved, outline=255, width=stroke)
        elif kind == "poly":
            draw.polygon(moved, fill=255)
        else:
            draw.line(moved, fill=255, width=stroke, joint="curve")
        self._lay(np.asarray(np.asarray(sheet) / 255.0, np.float32), top, left, fill, opacity)

    def _lay(self, stencil: Floats, top: int, left: int, fill: Colour | Floats, opacity: float) -> None:
        ys, xs = np.flatnonzero(stencil.any(1)), np.flatnonzero(stencil.any(0))
        if not ys.size:
            return
        cover = stencil[ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1] * opacity
        rows = slice(top + ys[0], top + ys[-1] + 1)
        cols = slice(left + xs[0], left + xs[-1] + 1)
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
        self._draw("box", (x1, y1, x2, y2), fill, o, radius=r)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Colour | Floats, *, o: float = 1) -> None:
        """An ellipse around (x, y)."""
        self._draw("oval", (x - rx, y - ry, x + rx, y + ry), fill, o)

    def ring(
        self, x: float, y: float, rx: float, ry: float, fill: Colour | Floats, *, line: float, o: float = 1
    ) -> None:
        """The outline of an ellipse, `line` pixels thick, inside its box."""
        self._draw("ring", (x - rx, y - ry, x + rx, y + ry), fill, o, line=line)

    def poly(self, points: Sequence[tuple[float, float]], fill: Colour | Floats, *, o: float = 1) -> None:
        """A filled polygon."""
        self._draw("poly", [v for p in points for v in p], fill, o)

    def line(self, points: Sequence[tuple[float, float]], fill: Colour, *, w: float = 2, o: float = 1) -> None:
        """A line through the points, `w` pixels wide."""
        self._draw("line", [v for p in points for v in p], fill, o, line=w)

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

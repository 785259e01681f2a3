"""Shapes whose masks are known by formula: disc, ring and star in a square of `SIDE` pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Mask

SIDE = 200
MIDDLE = 100.0
_YY, _XX = np.mgrid[0:SIDE, 0:SIDE] + 0.5


def disc(radius: float) -> Mask:
    return np.asarray(np.hypot(_XX - MIDDLE, _YY - MIDDLE) < radius)


def ring(outer: float, inner: float) -> Mask:
    return disc(outer) & ~disc(inner)


def circle_points(radius: float, count: int) -> npt.NDArray[np.float64]:
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([MIDDLE + radius * np.cos(angle), MIDDLE + radius * np.sin(angle)], axis=1)


def star_points(outer: float = 85.0, inner: float = 35.0) -> npt.NDArray[np.float64]:
    angle = np.pi * np.arange(10) / 5 - np.pi / 2
    radius = np.where(np.arange(10) % 2 == 0, outer, inner)
    return np.stack([MIDDLE + radius * np.cos(angle), MIDDLE + radius * np.sin(angle)], axis=1)


def star() -> Mask:
    """Inside of the star's ten edges: on the inner side of an odd number of them along a ray to the right."""
    points = star_points()
    inside: Mask = np.zeros((SIDE, SIDE), bool)
    for (x1, y1), (x2, y2) in zip(points, np.roll(points, -1, axis=0), strict=True):
        between = (y1 > _YY) != (y2 > _YY)
        # an edge that no row crosses divides by nothing that counts
        at = x1 + (_YY - y1) * (x2 - x1) / (y2 - y1 if y2 != y1 else 1.0)
        inside ^= between & (at > _XX)
    return inside

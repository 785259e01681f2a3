"""Closed outlines as periodic cubic B-splines, and their masks.

An outline is given by points it passes through, some of them corners. The control points come from the interpolation
conditions of the uniform cubic B-spline, (q[i-1] + 4 q[i] + q[i+1]) / 6 = p[i] around the ring; a corner is a control
point three times over, which the curve passes with a kink (de Boor, A Practical Guide to Splines, 1978). The curve is
confined to a box by laying what leaves it onto the box's edge. Holding the control points inside would do it too, by
the hull property, but a round thing that touches its box has control points outside, and would be flattened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.core.geometry import Box, Mask

Points = npt.NDArray[np.float64]
#: Straight pieces per span of the curve; a span of 100 pixels is then off by less than a tenth of a pixel.
STEPS = 24


@dataclass(frozen=True, slots=True)
class Outline:
    """A closed curve in pixels: points (N, 2) it passes through, N >= 3, the indices of its corners, and whether it
    cuts out a hole."""

    points: Points
    corners: frozenset[int] = frozenset()
    hole: bool = False


def control_points(outline: Outline) -> Points:
    """Control points (M, 2) of the periodic spline; corners stand three times. Raises ValueError for under 3 points."""
    points = np.asarray(outline.points, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not np.isfinite(points).all():
        raise ValueError("an outline needs at least three points (x, y)")
    owners = [place for place in range(len(points)) for _ in range(3 if place in outline.corners else 1)]
    count = len(owners)
    matrix = np.zeros((count, count))
    right = np.empty((count, 2))
    for row, place in enumerate(owners):
        right[row] = points[place]
        if place in outline.corners:
            matrix[row, row] = 1.0
        else:
            matrix[row, (row - 1) % count] += 1 / 6
            matrix[row, row] += 4 / 6
            matrix[row, (row + 1) % count] += 1 / 6
    return np.asarray(np.linalg.solve(matrix, right))


def curve(control: Points, *, within: Box | None = None, steps: int = STEPS) -> Points:
    """Points (M * steps, 2) on the periodic uniform cubic B-spline of M control points, confined to a box."""
    t = np.arange(steps)[:, None] / steps
    basis = np.hstack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    around = np.stack([np.roll(control, shift, axis=0) for shift in (1, 0, -1, -2)], axis=1)
    on = (basis @ around).reshape(-1, 2)
    if within is not None:
        on = on.clip([within.x1, within.y1], [within.x2, within.y2])
    return np.asarray(on)


def fill(polygon: Points, height: int, width: int) -> Mask:
    """Pixels whose centres lie inside a polygon (x, y), by the even-odd rule; shape (height, width)."""
    mask: Mask = np.zeros((height, width), bool)
    start, end = polygon, np.roll(polygon, -1, axis=0)
    first = max(0, int(np.floor(polygon[:, 1].min() - 0.5)))
    last = min(height, int(np.ceil(polygon[:, 1].max() + 0.5)))
    columns = np.arange(width) + 0.5
    for row in range(first, last):
        y = row + 0.5
        crosses = (start[:, 1] <= y) != (end[:, 1] <= y)
        if not crosses.any():
            continue
        a, b = start[crosses], end[crosses]
        at = np.sort(a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1]))
        mask[row] = np.searchsorted(at, columns) % 2 == 1
    return mask


def draw(outlines: Sequence[Outline], *, height: int, width: int, within: Box | None = None) -> Mask:
    """The union of the outlines that are no holes, without the holes; shape (height, width)."""
    mask: Mask = np.zeros((height, width), bool)
    for hole in (False, True):
        for outline in outlines:
            if outline.hole == hole:
                inside = fill(curve(control_points(outline), within=within), height, width)
                mask = mask & ~inside if hole else mask | inside
    return mask

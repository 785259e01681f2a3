"""Two drawings for the report, as inline SVG: how IoU is spread, and how it depends on the target's size.

Series are told apart by colour and by dash, and each drawing has a text of the same content for readers who do
not see it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

import numpy as np

from engine.core.schema import ScoreReport, UnitScores

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d1f", "#56b4e9", "#7a5195", "#444444")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
BINS = 10
#: edges of groups by the target's share of the image
SIZE_EDGES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)


@dataclass(frozen=True, slots=True)
class Series:
    """A named line, with a dot at each point if `marked`."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    marked: bool = False


def histogram(report: ScoreReport, truth: str) -> str:
    """Share of pairs by IoU, one stepped line per segmenter."""
    lines = []
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for units in _of(report, truth):
        values = np.array([iou for iou in units.iou if iou is not None])
        if not values.size:
            continue
        share = np.histogram(values, bins=edges)[0] / values.size
        x = np.repeat(edges, 2)[1:-1]
        y = np.repeat(share, 2)
        lines.append(Series(units.segmenter, tuple(x.tolist()), tuple(y.tolist())))
    top = max((max(one.y) for one in lines), default=1.0)
    return _plot("Share of pairs by IoU", "IoU", "share of pairs", lines, _ceil(top))


def size_curve(report: ScoreReport, truth: str) -> str:
    """Mean IoU by the target's share of the image, in groups with fixed edges; groups of no pair are gaps."""
    lines = []
    for units in _of(report, truth):
        target, pixels = (np.array(column, dtype=np.int64) for column in (units.target, units.pixels))
        iou = np.array(units.iou, dtype=np.float64)
        there = np.isfinite(iou) & (target > 0) & (pixels > 0)
        pairs = np.stack([target[there] / pixels[there], iou[there]], axis=1)
        group = np.digitize(pairs[:, 0], SIZE_EDGES[1:-1], right=True)
        held = [pairs[group == place] for place in range(len(SIZE_EDGES) - 1)]
        held = [one for one in held if len(one)]
        if held:
            x = [float(np.sqrt(one[:, 0].mean())) for one in held]
            y = [float(one[:, 1].mean()) for one in held]
            lines.append(Series(units.segmenter, tuple(x), tuple(y), marked=True))
    return _plot("Mean IoU by size of the target", "square root of the target's share of the image", "IoU", lines, 1.0)


def _of(report: ScoreReport, truth: str) -> list[UnitScores]:
    return [units for units in report.units if units.truth == truth]


def _ceil(value: float) -> float:
    return min(1.0, max(0.1, math.ceil(value * 10) / 10))


def _plot(title: str, x_title: str, y_title: str, lines: list[Series], top: float) -> str:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + x * wide, TOP + (1 - y / top) * high

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" class="chart">']
    for step in range(5):
        value = top * step / 4
        _, y = at(0, value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * value:.3g} %</text>')
    for step in range(6):
        x, _ = at(step / 5, 0)
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{step / 5:.1f}</text>'
        )
    middle = LEFT + wide / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(
        f'<text class="axis" x="14" y="{TOP + high / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {TOP + high / 2})">{escape(y_title)}</text>'
    )
    for place, series in enumerate(lines):
        points = [at(x, y) for x, y in zip(series.x, series.y, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = COLOURS[place % len(COLOURS)]
        if series.marked:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{DASHES[place // len(COLOURS) % len(DASHES)]}" points="{path}">'
            f"<title>{escape(series.name)}</title></polyline>"
        )
    parts.append("</svg>")
    legend = "".join(
        f'<li><span class="swatch" style="background:{COLOURS[place % len(COLOURS)]}"></span>{escape(series.name)}</li>'
        for place, series in enumerate(lines)
    )
    return f'<figure><figcaption>{escape(title)}</figcaption>{"".join(parts)}<ul class="legend">{legend}</ul></figure>'

"""The leaderboard's drawing as inline SVG: gIoU by window, a line per segmenter, cut-offs and changes marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape

from engine.core.schema import ScoreReport, Window
from inference.report.charts import COLOURS, DASHES

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 340, 48, 44, 16, 32
#: The reports' colours, but for the last one: a line has to be seen on a dark ground as well.
LINES = (*COLOURS[:-1], "#808080")
#: Dates that fit under the drawing side by side.
DATES = 8


@dataclass(frozen=True, slots=True)
class _Scale:
    """From days and shares to places in the drawing."""

    first: float
    last: float

    def x(self, day: float) -> float:
        return LEFT + (day - self.first) / max(1.0, self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)


def timeline(
    ordered: Sequence[tuple[Window, ScoreReport]],
    labels: Mapping[str, str],
    *,
    known: Mapping[str, date],
    shifts: Mapping[str, str],
) -> str:
    """The drawing. `labels` are the segmenters with what they are called, `known` their cut-offs, `shifts` what changed
    in a window (by its label)."""
    days = [(window.first.toordinal() + window.last.toordinal()) / 2 for window, _ in ordered]
    cuts = {name: float(day.toordinal()) for name, day in known.items()}
    scale = _Scale(min([*days, *cuts.values()]), max([*days, *cuts.values()]))
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="gIoU by window" class="chart">']
    parts += _frame(ordered, days, scale)
    for (window, _), day in zip(ordered, days, strict=True):
        if window.label in shifts:
            parts.append(_upright(scale.x(day), "var(--soft)", "1 5", shifts[window.label]))
    legend = []
    for place, (name, label) in enumerate(labels.items()):
        colour, dash = LINES[place % len(LINES)], DASHES[place // len(LINES) % len(DASHES)]
        for run in _runs(ordered, days, name):
            points = [(scale.x(day), scale.y(value)) for day, value in run]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
            parts.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" points="{path}">'
                f"<title>{escape(label)}</title></polyline>"
            )
        if name in cuts:
            parts.append(_upright(scale.x(cuts[name]), colour, "3 4", f"knowledge cut-off of {name}"))
        cut = ", upright line: knowledge cut-off" if name in cuts else ""
        legend.append(f"<li>{_sample(colour, dash)}{escape(label)}{cut}</li>")
    if shifts:
        legend.append(f"<li>{_sample('var(--soft)', '1 5')}upright: a change of the pipeline, see above</li>")
    drawn = "".join([*parts, "</svg>"])
    return f'<figure><figcaption>gIoU by window</figcaption>{drawn}<ul class="legend">{"".join(legend)}</ul></figure>'


def _frame(ordered: Sequence[tuple[Window, ScoreReport]], days: Sequence[float], scale: _Scale) -> Iterator[str]:
    for step in range(6):
        y = scale.y(step / 5)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{20 * step}</text>'
    # counted from the newest window, which a reader looks for first
    for place in range(len(days) - 1, -1, -max(1, -(-len(days) // DATES))):
        x, told = scale.x(days[place]), ordered[place][0].first
        yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{told}</text>'


def _runs(
    ordered: Sequence[tuple[Window, ScoreReport]], days: Sequence[float], name: str
) -> Iterator[list[tuple[float, float]]]:
    """A segmenter's days and scores, cut where a window has none: a line over a blank would show what nobody
    measured."""
    run: list[tuple[float, float]] = []
    for (_, report), day in zip(ordered, days, strict=True):
        try:
            value = report.row(name).value("giou")
        except KeyError:
            value = None
        if value is not None:
            run.append((day, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _upright(x: float, colour: str, dash: str, told: str) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
        f'stroke-dasharray="{dash}"><title>{escape(told)}</title></line>'
    )


def _sample(colour: str, dash: str) -> str:
    """A short piece of a line for the legend: colours repeat, dashes tell them apart."""
    return (
        '<svg class="stroke" viewBox="0 0 28 8" aria-hidden="true">'
        f'<line x1="0" x2="28" y1="4" y2="4" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"/></svg>'
    )

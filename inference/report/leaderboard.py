"""The leaderboard over time: `leaderboard.json`, `leaderboard.md` and one self-contained `leaderboard.html`.

One line per segmenter, one column per window; cut-offs are marked, trends are differences to anchors (see `trends`),
retired segmenters stay listed and blanks are explained. Static files, so that they can be pushed beside the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from engine.core.errors import ConfigError
from engine.core.schema import ScoreReport, Window, canonical_json
from engine.core.store import write_atomic
from inference.report.charts import COLOURS, DASHES
from inference.report.tables import DASH, Cell, Column, Line, Table, estimate_cell
from inference.report.text import markdown_table
from inference.report.trends import Trend, after_cutoff, by_window, cutoffs, trends

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 340, 48, 44, 16, 32


@dataclass(frozen=True, slots=True)
class Board:
    """The files that were written, and the trends in them."""

    json: Path
    markdown: Path
    html: Path
    trends: tuple[Trend, ...]


def write_leaderboard(
    reports: Sequence[ScoreReport],
    folder: Path,
    *,
    anchors: Sequence[str] = (),
    retired: Mapping[str, str] | None = None,
    knowledge: Mapping[str, str] | None = None,
    shifts: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Board:
    """Write the leaderboard of all windows' reports into `folder`.

    `anchors` are frozen segmenters that score every window, `retired` says of segmenters why they score no more,
    `knowledge` gives cut-offs (YYYY-MM-DD) that the reports do not have, `shifts` says of windows by how much a change
    of the pipeline alone moved the scores there. Raises `ConfigError` where there is nothing to show or reports do not
    go together.
    """
    ordered = by_window(reports)
    if not ordered:
        raise ConfigError("there is no report of a window yet: score one first")
    gone = dict(retired or {})
    known = dict(cutoffs(reports, knowledge))
    found = trends(reports, anchors, seed=seed)
    names = sorted({info.name for _, report in ordered for info in report.segmenters} | set(gone))
    windows = _window_table(ordered, names, anchors, gone)
    change = _trend_table(found)
    later = Table(
        "After the knowledge cut-off",
        (Column("Method", numeric=False), Column("cut-off", numeric=False), Column("gIoU"), Column("cIoU")),
        tuple(
            Line(
                (
                    Cell(name, name),
                    Cell(day.isoformat(), day.isoformat()),
                    *(
                        estimate_cell(after_cutoff(reports, name, day, metric=metric, seed=seed), interval=True)
                        for metric in ("giou", "ciou")
                    ),
                )
            )
            for name, day in known.items()
        ),
    )
    tables = [table for table in (windows, change, later) if table.lines]
    notes = [
        *_notes(ordered, anchors, gone),
        *(f"change of the pipeline, {told}" for _, told in sorted((shifts or {}).items())),
    ]
    board = Board(folder / "leaderboard.json", folder / "leaderboard.md", folder / "leaderboard.html", tuple(found))
    write_atomic(
        board.json,
        (canonical_json({**_plain(ordered, names, gone, known, found), "shifts": dict(shifts or {})}) + "\n").encode(),
    )
    parts = ["# Scores by window", *(f"\n- {note}" for note in notes)]
    parts += [f"\n## {table.title}\n\n{markdown_table(table)}" for table in tables]
    write_atomic(board.markdown, ("\n".join(parts) + "\n").encode())
    chart = _chart(ordered, names, {name: day.toordinal() for name, day in known.items()})
    write_atomic(board.html, _page(tables, notes, chart).encode())
    return board


def _window_table(
    ordered: Sequence[tuple[Window, ScoreReport]], names: Sequence[str], anchors: Sequence[str], gone: Mapping[str, str]
) -> Table:
    columns = [Column("Method", numeric=False), *(Column(window.label, "gIoU") for window, _ in ordered)]
    lines = []
    for name in names:
        label = name + (" (anchor)" if name in anchors else "") + (" (retired)" if name in gone else "")
        cells = [Cell(label, name, gone.get(name, ""))]
        for _, report in ordered:
            try:
                row = report.row(name)
            except KeyError:
                cells.append(Cell(DASH, None, gone.get(name, "not run on this window")))
                continue
            cell = estimate_cell(row.figures.get("giou"), interval=True)
            mark = "*" if row.failed or row.missing else ""
            cells.append(Cell(cell.text + mark, cell.value, cell.about, cell.interval))
        lines.append(Line(tuple(cells)))
    return Table("gIoU by window", tuple(columns), tuple(lines))


def _trend_table(found: Sequence[Trend]) -> Table:
    titles = ("early − anchors", "late − anchors", "change")
    columns = [Column("Method", numeric=False), Column("windows"), *(Column(title, "points") for title in titles)]
    columns.append(Column("verdict", numeric=False))
    lines = [
        Line(
            (
                Cell(one.segmenter, one.segmenter),
                Cell(str(one.windows), one.windows),
                *(estimate_cell(value, interval=True) for value in (one.early, one.late, one.change)),
                Cell(one.verdict, one.verdict),
            )
        )
        for one in found
    ]
    return Table("Differences to the anchors, four windows pooled", tuple(columns), tuple(lines))


def _notes(ordered: Sequence[tuple[Window, ScoreReport]], anchors: Sequence[str], gone: Mapping[str, str]) -> list[str]:
    notes = [
        f"convention {ordered[0][1].convention}, percent; windows differ in difficulty, so that lines of one segmenter "
        "are not compared between windows but its differences to the anchors are",
        f"anchors: {', '.join(anchors) if anchors else 'none named, so that no trend is said'}",
        "a star marks windows with failed or missing pairs; they are in no figure",
    ]
    return notes + [f"{name} is retired: {why}" for name, why in sorted(gone.items())]


def _plain(
    ordered: Sequence[tuple[Window, ScoreReport]],
    names: Sequence[str],
    gone: Mapping[str, str],
    known: Mapping[str, object],
    found: Sequence[Trend],
) -> dict[str, object]:
    rows = []
    for window, report in ordered:
        for name in names:
            try:
                row = report.row(name)
            except KeyError:
                continue
            told: dict[str, object] = {"window": window.label, "segmenter": name, "score_string": report.score_string}
            told |= {metric: row.figures[metric].model_dump() for metric in ("giou", "ciou") if metric in row.figures}
            rows.append({**told, "failed": row.failed, "missing": row.missing})
    return {
        "schema_version": 1,
        "windows": [window.label for window, _ in ordered],
        "rows": rows,
        "retired": dict(gone),
        "cutoffs": {name: str(day) for name, day in known.items()},
        "trends": [
            {
                "segmenter": one.segmenter,
                "windows": one.windows,
                "verdict": one.verdict,
                **{name: getattr(one, name).model_dump() for name in ("early", "late", "change")},
            }
            for one in found
        ],
    }


def _chart(ordered: Sequence[tuple[Window, ScoreReport]], names: Sequence[str], known: Mapping[str, int]) -> str:
    days = [(window.first.toordinal() + window.last.toordinal()) / 2 for window, _ in ordered]
    first, last = min([*days, *known.values()]), max([*days, *known.values()])
    span = max(1.0, last - first)

    def at(day: float, value: float) -> tuple[float, float]:
        x = LEFT + (day - first) / span * (WIDTH - LEFT - RIGHT)
        return x, TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="gIoU by window" class="chart">']
    for step in range(6):
        _, y = at(first, step / 5)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{20 * step}</text>')
    for place, ((window, _), day) in enumerate(zip(ordered, days, strict=True)):
        if place % max(1, len(days) // 10) == 0:
            x, _ = at(day, 0)
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{window.first}</text>'
            )
    legend = []
    for place, name in enumerate(names):
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]
        points = []
        for (_, report), day in zip(ordered, days, strict=True):
            try:
                value = report.row(name).value("giou")
            except KeyError:
                continue
            if value is not None:
                points.append(at(day, value))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" points="{path}"/>'
        )
        if name in known:
            x, _ = at(known[name], 0)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
                f'stroke-dasharray="3 4"><title>knowledge cut-off of {escape(name)}</title></line>'
            )
        cut = " (dashed line: knowledge cut-off)" if name in known else ""
        legend.append(f'<li><span class="swatch" style="background:{colour}"></span>{escape(name)}{cut}</li>')
    parts.append("</svg>")
    drawn, told = "".join(parts), "".join(legend)
    return f'<figure><figcaption>gIoU by window</figcaption>{drawn}<ul class="legend">{told}</ul></figure>'


def _page(tables: Sequence[Table], notes: Sequence[str], chart: str) -> str:
    from inference.report.write import environment

    page: str = environment().get_template("leaderboard.html.j2").render(tables=tables, notes=notes, chart=chart)
    return page

"""The leaderboard over time: `leaderboard.json`, `leaderboard.md` and one self-contained `leaderboard.html`.

One line per segmenter, one column per window; cut-offs are marked, trends are differences to anchors (see `trends`),
retired segmenters stay listed and blanks are explained. Static files, so that they can be pushed beside the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import ConfigError
from engine.core.schema import ScoreReport, Window, canonical_json
from engine.core.store import write_atomic
from inference.report.tables import DASH, Cell, Column, Line, Table, estimate_cell
from inference.report.text import markdown_table
from inference.report.timeline import timeline
from inference.report.trends import Trend, after_cutoff, by_window, cutoffs, trends


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
    labels = {name: _label(name, anchors, gone) for name in names}
    chart = timeline(ordered, labels, known=known, shifts=dict(shifts or {}))
    write_atomic(board.html, _page(tables, notes, chart).encode())
    return board


def _window_table(
    ordered: Sequence[tuple[Window, ScoreReport]], names: Sequence[str], anchors: Sequence[str], gone: Mapping[str, str]
) -> Table:
    newest = list(reversed(ordered))
    columns = [Column("Method", numeric=False), *(Column(window.label) for window, _ in newest)]
    lines = []
    for name in names:
        cells = [Cell(_label(name, anchors, gone), name, gone.get(name, ""))]
        for _, report in newest:
            try:
                row = report.row(name)
            except KeyError:
                cells.append(Cell(DASH, None, gone.get(name, "not run on this window")))
                continue
            cell = estimate_cell(row.figures.get("giou"), interval=True)
            mark = "*" if row.failed or row.missing else ""
            cells.append(Cell(cell.text + mark, cell.value, cell.about, cell.interval))
        lines.append(Line(tuple(cells)))
    return Table("gIoU by window, the newest first", tuple(columns), tuple(lines))


def _label(name: str, anchors: Sequence[str], gone: Mapping[str, str]) -> str:
    return name + (" (anchor)" if name in anchors else "") + (" (retired)" if name in gone else "")


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
        f"convention {ordered[0][1].convention}, percent; windows differ in difficulty: how a segmenter's own figure "
        "moves says little, its difference to the anchors is what is compared",
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


def _page(tables: Sequence[Table], notes: Sequence[str], chart: str) -> str:
    from inference.report.write import environment

    page: str = environment().get_template("leaderboard.html.j2").render(tables=tables, notes=notes, chart=chart)
    return page

"""The tables of a report, once, for all the forms it is written in: Markdown, HTML and terminal.

A table is columns and cells with a text and a value to sort by; how it looks is the writers' business. Table 1 has
the shape of the paper's: method, retrieval, answer accuracy, then gIoU and cIoU for novel, emerging and overall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.schema import Estimate, ScoreReport, ScoreRow
from inference.report.quoted import TableNumber, quoted_rows

NOVEL, EMERGING, OVERALL = "novel", "emerging", "overall"
DASH = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, the value it is sorted by (None sorts last), a longer explanation, and an interval to show beside."""

    text: str
    value: float | str | None = None
    about: str = ""
    interval: str = ""

    @property
    def full(self) -> str:
        """Text and interval."""
        return f"{self.text} ({self.interval})" if self.interval else self.text


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title, and the group it stands under ("" for none)."""

    title: str
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A row of cells; `kind` is segmenter, baseline or quoted."""

    cells: tuple[Cell, ...]
    kind: str = "segmenter"


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; `notes` stand below it."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())


def percent(value: float | None, digits: int = 1) -> str:
    """A share as percent without the sign, a dash for none."""
    return DASH if value is None else f"{100 * value:.{digits}f}"


def estimate_cell(estimate: Estimate | None, *, interval: bool = False) -> Cell:
    """A figure, with its 95 % interval as text or as explanation."""
    if estimate is None or estimate.value is None:
        return Cell(DASH, None, "0/0: there is nothing to count" if estimate else "")
    if estimate.low is None or estimate.high is None:
        return Cell(percent(estimate.value), estimate.value)
    span = f"{percent(estimate.low)} to {percent(estimate.high)}"
    return Cell(percent(estimate.value), estimate.value, f"95 % interval {span}", span if interval else "")


def novelty_split(report: ScoreReport) -> tuple[str, str]:
    """The split that novel and emerging are read from, and how to say it; ("", "") if the data has none."""
    splits = {row.split for row in report.rows}
    tag = f"novelty:{report.base_model}"
    if report.base_model and tag in splits:
        return tag, f"novel and emerging by what {report.base_model} knows without the news"
    if "kind" in splits:
        return "kind", "novel and emerging as the question's writer meant it, not by a model's knowledge"
    return "", ""


def main_table(report: ScoreReport, truth: str, *, quoted: bool = False) -> Table:
    """Table 1: every segmenter and baseline against one truth, with the paper's rows below if asked for."""
    split, said = novelty_split(report)
    strict = any(row.strict for row in report.rows if row.truth == truth and not row.split)
    columns = [Column("Method", numeric=False), Column("RAG", numeric=False), Column("Acc.")]
    if split:
        for part in (NOVEL, EMERGING):
            columns += [Column("gIoU", part), Column("cIoU", part)]
    columns += [Column("gIoU", OVERALL), Column("cIoU", OVERALL)]
    if strict:
        columns += [Column("gIoU strict", OVERALL)]
    columns += [Column("pairs"), Column("failed"), Column("missing")]
    lines = []
    for row in whole_rows(report, truth):
        cells = [Cell(row.segmenter, row.segmenter), _rag(row), estimate_cell(row.figures.get("accuracy"))]
        if split:
            for part in (NOVEL, EMERGING):
                found = find_row(report, row.segmenter, truth, split, part)
                cells += [estimate_cell(found.figures.get(name)) if found else Cell(DASH) for name in ("giou", "ciou")]
        measured = row.kind == "segmenter"
        cells += [estimate_cell(row.figures.get(name), interval=measured) for name in ("giou", "ciou")]
        if strict:
            cells.append(estimate_cell(row.strict.get("giou") or row.figures.get("giou")))
        cells += [_count(row.units), _count(row.failed), _count(row.missing)]
        lines.append(Line(tuple(cells), row.kind))
    if quoted:
        lines += quoted_lines("1", [NOVEL, EMERGING, OVERALL] if split else [OVERALL], extra=4 if strict else 3)
    notes = [said] if said else []
    if strict:
        notes.append("strict: failed and missing pairs count as a wrong empty mask")
    if quoted:
        notes.append("quoted: figures of the paper on its own data and by its own evaluator, not measured here")
    return Table("Segmentation scores", tuple(columns), tuple(lines), tuple(notes))


def mixture_table(report: ScoreReport, truth: str, *, quoted: bool = False) -> Table | None:
    """Table 2: the parts of a mixture (tag `source_set`), or None where the data is no mixture."""
    parts = _parts(report, truth, "source_set")
    if not parts:
        return None
    columns = [Column("Method", numeric=False), Column("RAG", numeric=False)]
    for part in (*parts, OVERALL):
        columns += [Column("gIoU", part), Column("cIoU", part)]
    lines = []
    for row in whole_rows(report, truth):
        cells = [Cell(row.segmenter, row.segmenter), _rag(row)]
        for part in parts:
            found = find_row(report, row.segmenter, truth, "source_set", part)
            cells += [estimate_cell(found.figures.get(name)) if found else Cell(DASH) for name in ("giou", "ciou")]
        cells += [estimate_cell(row.figures.get("giou")), estimate_cell(row.figures.get("ciou"))]
        lines.append(Line(tuple(cells), row.kind))
    if quoted:
        lines += quoted_lines("2", [*parts, OVERALL], extra=0, accuracy=False)
    return Table("Parts of the mixture", tuple(columns), tuple(lines))


def parts_table(report: ScoreReport, truth: str) -> Table | None:
    """gIoU of every part of the data, one column per segmenter."""
    rows_of_all = whole_rows(report, truth)
    rows = [row for row in report.rows if row.truth == truth and row.split]
    keys = list(dict.fromkeys((row.split, row.part) for row in rows))
    if not keys:
        return None
    columns = [Column("Split", numeric=False), Column("Part", numeric=False), Column("pairs")]
    columns += [Column(row.segmenter, "gIoU") for row in rows_of_all]
    lines = []
    for split, part in keys:
        found = [find_row(report, row.segmenter, truth, split, part) for row in rows_of_all]
        units = max((row.units for row in found if row), default=0)
        cells = [Cell(split, split), Cell(part, part), _count(units)]
        cells += [estimate_cell(row.figures.get("giou")) if row else Cell(DASH) for row in found]
        lines.append(Line(tuple(cells)))
    return Table("Parts of the data", tuple(columns), tuple(lines))


def comparison_table(report: ScoreReport, truth: str) -> Table | None:
    """Paired differences between segmenters in points."""
    lines = []
    for one in report.comparisons:
        if one.truth != truth:
            continue
        low, high = one.difference.low, one.difference.high
        sure = "yes" if low is not None and high is not None and (low > 0 or high < 0) else "no"
        name = {"giou": "gIoU", "ciou": "cIoU"}.get(one.metric, one.metric)
        lines.append(
            Line(
                (
                    Cell(f"{one.first} − {one.second}", one.first),
                    Cell(name, name),
                    estimate_cell(one.difference, interval=True),
                    Cell(sure, sure, "whether the 95 % interval leaves out zero"),
                    Cell(DASH if one.p_value is None else f"{one.p_value:.4f}", one.p_value),
                    _count(one.units),
                )
            )
        )
    if not lines:
        return None
    columns = (
        Column("Difference", numeric=False),
        Column("Metric", numeric=False),
        Column("points (95 % interval)"),
        Column("beyond zero", numeric=False),
        Column("p"),
        Column("pairs"),
    )
    return Table("Paired differences", columns, tuple(lines))


def figures_table(report: ScoreReport, truth: str, titles: dict[str, str]) -> Table:
    """All other figures: the metrics by name, and gIoU and cIoU in the other conventions."""
    rows_of_all = whole_rows(report, truth)
    names = [name for name in dict.fromkeys(name for row in rows_of_all for name in row.figures) if name != "accuracy"]
    columns = [Column("Figure", numeric=False), *(Column(row.segmenter) for row in rows_of_all)]
    lines = []
    for name in names:
        convention, _, metric = name.rpartition(":")
        title = titles.get(metric, metric) + (f" ({convention})" if convention else "")
        cells = [Cell(title, title), *(estimate_cell(row.figures.get(name)) for row in rows_of_all)]
        lines.append(Line(tuple(cells)))
    return Table("All figures", tuple(columns), tuple(lines))


def quoted_tables() -> list[Table]:
    """The paper's tables 1 to 3 by themselves."""
    tables = []
    for number, title, parts, accuracy in (
        ("1", "Table 1: NEST", (NOVEL, EMERGING, OVERALL), True),
        ("2", "Table 2: NEST+", ("NEST", "ReasonSeg", "RefSeg", OVERALL), False),
        ("3", "Table 3: ablation on NEST, WebSense off", (NOVEL, EMERGING, OVERALL), False),
    ):
        columns = [Column("Method", numeric=False), Column("RAG", numeric=False)]
        columns += [Column("Acc.")] if accuracy else []
        for part in parts:
            columns += [Column("gIoU", part), Column("cIoU", part)]
        lines = quoted_lines(number, parts, extra=0, accuracy=accuracy)  # type: ignore[arg-type]
        tables.append(Table(title, tuple(columns), tuple(lines)))
    return tables


def whole_rows(report: ScoreReport, truth: str) -> list[ScoreRow]:
    """The rows over all of the data against one truth."""
    return [row for row in report.rows if row.truth == truth and not row.split]


def find_row(report: ScoreReport, segmenter: str, truth: str, split: str, part: str) -> ScoreRow | None:
    """One row, None if there is none."""
    try:
        return report.row(segmenter, truth=truth, split=split, part=part)
    except KeyError:
        return None


def _parts(report: ScoreReport, truth: str, split: str) -> list[str]:
    return list(dict.fromkeys(row.part for row in report.rows if row.truth == truth and row.split == split))


def is_rose(name: str) -> bool:
    """Whether a segmenter is ROSE around another, with all or some of its modules."""
    return name.startswith("rose") and ":" in name


def _rag(row: ScoreRow) -> Cell:
    text = DASH if row.kind == "baseline" else "yes" if is_rose(row.segmenter) or "search" in row.segmenter else "no"
    return Cell(text, text)


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)


def quoted_lines(
    table: TableNumber, parts: Sequence[str], *, extra: int, accuracy: bool = True, retrieval: bool = True
) -> list[Line]:
    lines = []
    for row in quoted_rows(table):
        cells = [Cell(f"{row.method} (quoted)", row.method, f"quoted from the {row.source}")]
        if retrieval:
            text = "yes" if row.retrieval else "no"
            cells.append(Cell(text, text))
        if accuracy:
            cells.append(_quoted(row.accuracy))
        for part in parts:
            giou, ciou = row.figures.get(part, (None, None))
            cells += [_quoted(giou), _quoted(ciou)]
        cells += [Cell(DASH)] * extra
        lines.append(Line(tuple(cells), "quoted"))
    return lines


def _quoted(value: float | None) -> Cell:
    return Cell(DASH) if value is None else Cell(f"{value:.1f}", value / 100, "quoted")

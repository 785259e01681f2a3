"""Tables as Markdown and as plain text for a terminal, and the Markdown report."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from engine.core.schema import ScoreReport, TruthInfo
from inference.report.ablation import ablation_table
from inference.report.quoted import paper
from inference.report.tables import (
    Column,
    Table,
    comparison_table,
    figures_table,
    main_table,
    mixture_table,
    parts_table,
    percent,
    quoted_tables,
)

_MARKS = {"baseline": " (baseline)", "quoted": "", "segmenter": ""}


def markdown_table(table: Table) -> str:
    """A GitHub-flavoured Markdown table; a column's group stands before its title."""
    head = [_escape(f"{column.group} {column.title}".strip()) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    rows = ["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|"]
    for line in table.lines:
        texts = [_escape(cell.full) for cell in line.cells]
        texts[0] += _MARKS.get(line.kind, "")
        rows.append("| " + " | ".join(texts) + " |")
    return "\n".join(rows)


def plain_table(table: Table) -> str:
    """A table for a terminal, columns aligned."""
    head = [column.title for column in table.columns]
    rows = [[cell.full for cell in line.cells] for line in table.lines]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = []
    if any(column.group for column in table.columns):
        lines.append(_groups(table.columns, widths))
    lines.append(_aligned(head, table.columns, widths))
    lines.append("  ".join("-" * width for width in widths))
    previous = ""
    for line, row in zip(table.lines, rows, strict=True):
        if previous and line.kind != previous:
            lines.append("")
        previous = line.kind
        lines.append(_aligned(row, table.columns, widths))
    return "\n".join(lines)


def terminal(report: ScoreReport) -> str:
    """What the command prints last: one table per truth, the paired differences, and what to be wary of."""
    blocks = []
    for truth in report.truths:
        table = main_table(report, truth.name)
        blocks.append(f"{_against(truth)}\n\n{plain_table(table)}")
        if (modules := ablation_table(report, truth.name)) and len(modules.lines) > 2:
            blocks.append("\n".join([f"{modules.title}\n\n{plain_table(modules)}", *modules.notes]))
        if compared := comparison_table(report, truth.name):
            blocks.append(plain_table(compared))
    if report.warnings or report.notes:
        blocks.append("\n".join(f"- {line}" for line in (*report.warnings, *report.notes)))
    blocks.append(report.score_string)
    return "\n\n".join(blocks) + "\n"


def markdown(report: ScoreReport, *, titles: dict[str, str], quoted: bool = True) -> str:
    """`report.md`: tables in the shape of the paper's, then everything else."""
    return "\n".join(_markdown(report, titles, quoted)) + "\n"


def _markdown(report: ScoreReport, titles: dict[str, str], quoted: bool) -> Iterator[str]:
    yield f"# Scores on {report.dataset}"
    yield ""
    yield f"`{report.score_string}`"
    yield ""
    yield f"Convention `{report.convention}`: {report.conventions.get(report.convention, '')}. "
    yield f"Unit: {report.unit}. Figures are percent; intervals are 95 %, from {report.resamples} bootstrap samples of "
    yield f"{report.clusters} clusters of images."
    for title, lines in (("To be wary of", report.warnings), ("Notes", report.notes)):
        if lines:
            yield f"\n**{title}**\n"
            yield from (f"- {line}" for line in lines)
    for number, truth in enumerate(report.truths):
        # rows of the paper stand beside measured ones only for the paper's own data
        beside = quoted and number == 0 and report.dataset == paper()["dataset"]
        yield f"\n## {_against(truth)}"
        tables = [
            main_table(report, truth.name, quoted=beside),
            mixture_table(report, truth.name, quoted=beside),
            ablation_table(report, truth.name, quoted=beside),
            comparison_table(report, truth.name),
            parts_table(report, truth.name),
            figures_table(report, truth.name, titles),
        ]
        for table in tables:
            if table is None:
                continue
            yield f"\n### {table.title}\n"
            yield markdown_table(table)
            if table.notes:
                yield ""
                yield from (f"*{note}.*" for note in table.notes)
    if quoted and report.dataset != paper()["dataset"]:
        found = paper()
        yield f"\n## Quoted: {found['title']} ({found['venue']}, arXiv {found['arxiv']})\n"
        yield f"On {found['dataset']} and by the paper's own evaluator; nothing here was measured by this run."
        for table in quoted_tables():
            yield f"\n### {table.title}\n"
            yield markdown_table(table)
    if report.answers:
        yield "\n## Answers\n"
        for one in report.answers:
            given = [value for value in one.correct if value is not None]
            right = percent(sum(given) / len(given)) if given else percent(None)
            yield f"- {one.segmenter}: {len(given)} of {len(one.correct)} samples answered, {right} % of them right"


def _against(truth: TruthInfo) -> str:
    return f"Against {truth.name}" + (f": {truth.description}" if truth.description else "")


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _aligned(row: list[str], columns: tuple[Column, ...], widths: list[int]) -> str:
    cells = [
        text.rjust(width) if column.numeric else text.ljust(width)
        for text, column, width in zip(row, columns, widths, strict=True)
    ]
    return "  ".join(cells).rstrip()


def _groups(columns: tuple[Column, ...], widths: list[int]) -> str:
    parts = []
    for group, members in groupby(range(len(columns)), key=lambda place: columns[place].group):
        places = list(members)
        width = sum(widths[place] for place in places) + 2 * (len(places) - 1)
        parts.append(group[:width].center(width) if group else " " * width)
    return "  ".join(parts).rstrip()

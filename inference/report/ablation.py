"""Table 3: a segmenter, and ROSE around it with its modules switched on one by one, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.schema import ScoreReport, ScoreRow
from inference.report.tables import (
    DASH,
    EMERGING,
    NOVEL,
    OVERALL,
    Cell,
    Column,
    Line,
    Table,
    estimate_cell,
    find_row,
    is_rose,
    novelty_split,
    quoted_lines,
    whole_rows,
)
from inference.rose.ablation import VARIANTS

SWITCHES = {"websense": "WebSense", "irag": "IRAG", "tpe": "TPE", "vpe": "VPE"}
ON, OFF, AS_SET = "✓", "", "as set"


def ablation_table(report: ScoreReport, truth: str, *, quoted: bool = False) -> Table | None:
    """A segmenter and its `rose...:` variants with what is switched on in each, or None where there is no variant.

    Rows keep the order of the report. Plain `rose` follows the configuration, which a report does not hold.
    """
    rows = [row for row in whole_rows(report, truth) if row.kind == "segmenter"]
    bases = {row.segmenter.partition(":")[2] for row in rows if is_rose(row.segmenter)}
    wanted = [row for row in rows if is_rose(row.segmenter) or row.segmenter in bases]
    if not any(is_rose(row.segmenter) for row in wanted):
        return None
    split, said = novelty_split(report)
    parts = [NOVEL, EMERGING] if split else []
    columns = [Column("Method", numeric=False)]
    columns += [Column(title, numeric=False) for title in SWITCHES.values()]
    for part in (*parts, OVERALL):
        columns += [Column("gIoU", part), Column("cIoU", part)]
    columns += [Column("Acc.")]
    lines = []
    for row in sorted(wanted, key=lambda row: (_base(row.segmenter), is_rose(row.segmenter))):
        cells = [Cell(row.segmenter, row.segmenter), *_switches(row.segmenter)]
        for part in parts:
            found = find_row(report, row.segmenter, truth, split, part)
            cells += [estimate_cell(found.figures.get(name)) if found else Cell(DASH) for name in ("giou", "ciou")]
        cells += [estimate_cell(row.figures.get(name), interval=True) for name in ("giou", "ciou")]
        cells += [estimate_cell(row.figures.get("accuracy"))]
        lines.append(Line(tuple(cells)))
    if quoted:
        for line in quoted_lines("3", [*parts, OVERALL], extra=1, accuracy=False, retrieval=False):
            lines.append(Line((line.cells[0], *[Cell(OFF)] * len(SWITCHES), *line.cells[1:]), line.kind))
    notes = [*([said] if said else []), *_unmoved(wanted)]
    return Table("Modules of ROSE", tuple(columns), tuple(lines), tuple(notes))


def _unmoved(rows: Sequence[ScoreRow]) -> list[str]:
    """What rows without VPE that score exactly as the bare segmenter mean."""
    figures = {row.segmenter: (row.value("giou"), row.value("ciou")) for row in rows}
    notes = []
    for base in sorted({_base(name) for name in figures} & set(figures)):
        prompted = [name for name in figures if _base(name) == base != name and not _checks(name)]
        if prompted and all(figures[name] == figures[base] for name in prompted):
            notes.append(
                f"{' and '.join(prompted)} score as {base}: a segmenter that takes kinds of things and no names has "
                "the same prompt with and without the answer, so that what is gained comes from VPE"
            )
    return notes


def _checks(name: str) -> bool:
    """Whether VPE may be on in a variant."""
    return bool((VARIANTS.get(name.partition(":")[0]) or {}).get("vpe", True))


def _base(name: str) -> str:
    return name.partition(":")[2] if is_rose(name) else name


def _switches(name: str) -> list[Cell]:
    """A mark per module."""
    if not is_rose(name):
        return [Cell(OFF, 0.0) for _ in SWITCHES]
    told = VARIANTS.get(name.partition(":")[0]) or {}
    return [Cell(AS_SET if key not in told else ON if told[key] else OFF, float(told.get(key, 1))) for key in SWITCHES]

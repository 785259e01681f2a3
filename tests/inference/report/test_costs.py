"""What modules took per sample, and the table of the ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.schema import Estimate, ScoreReport, ScoreRow, Timing
from inference.report.ablation import AS_SET, OFF, ON, ablation_table
from inference.report.costs import costs_table, module_costs, read_costs, write_costs
from inference.report.text import plain_table
from inference.rose.ablation import VARIANTS, ablation


def spent(sample: str, module: str, seconds: float, usd: float = 0.0, tokens: int = 0) -> Timing:
    return Timing(
        sample_id=sample, segmenter="rose:x", module=module, seconds=seconds, usd=usd, tokens_in=tokens, tokens_out=1
    )


TIMINGS = [
    spent("a", "vpe", 0.5),
    spent("a", "irag", 1.0, 0.25, 100),
    spent("b", "irag", 3.0, 0.75, 300),
    # the part of a sample that was predicted in two runs counts together
    spent("b", "irag", 1.0),
    spent("b", "own", 2.0),
]


def test_modules_in_the_order_a_sample_meets_them_per_sample_that_used_them() -> None:
    rows = module_costs(TIMINGS, samples=3)
    assert [row.module for row in rows] == ["irag", "vpe", "own", "all"]
    irag, vpe, _, whole = rows
    assert (irag.samples, irag.of, irag.seconds_mean, irag.usd, irag.tokens_in) == (2, 3, 2.5, 0.5, 200.0)
    assert irag.seconds_p95 == pytest.approx(3.85)
    assert (vpe.samples, vpe.seconds_median) == (1, 0.5)
    assert (whole.samples, whole.seconds_mean) == (2, pytest.approx((1.5 + 6.0) / 2))
    assert module_costs([], samples=3) == []


def test_they_are_written_beside_the_report_and_read_again(tmp_path: Path) -> None:
    rows = module_costs(TIMINGS, samples=3)
    write_costs(rows, tmp_path)
    assert read_costs(tmp_path) == rows
    assert "| rose:x | irag | 2/3 | 2.5000 |" in (tmp_path / "costs.md").read_text()
    page = (tmp_path / "costs.html").read_text()
    assert "2.5000" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "seconds per sample" in plain_table(costs_table(rows))
    assert read_costs(tmp_path / "elsewhere") == []
    (tmp_path / "costs.json").write_text('[{"segmenter": 1}]')
    assert read_costs(tmp_path) == []


def row(name: str, giou: float) -> ScoreRow:
    figures = {"giou": Estimate(value=giou, low=giou - 0.1, high=giou + 0.1), "ciou": Estimate(value=giou)}
    return ScoreRow(segmenter=name, truth="t", samples=4, units=4, scored=4, figures=figures)


def report(*rows: ScoreRow) -> ScoreReport:
    told = {"dataset": "d", "convention": "lisa", "unit": "pair", "seed": 0, "score_string": "s", "samples": ()}
    return ScoreReport.model_construct(**told, rows=rows, base_model="")


def test_the_ablation_has_the_form_of_table_3_with_intervals() -> None:
    names = ablation("portable")
    found = ablation_table(report(*(row(name, 0.2 + n / 10) for n, name in enumerate(names))), "t")
    assert found is not None
    assert [line.cells[0].text for line in found.lines] == list(names)
    assert [column.title for column in found.columns][:5] == ["Method", "WebSense", "IRAG", "TPE", "VPE"]
    marks = {line.cells[0].text: [cell.text for cell in line.cells[1:5]] for line in found.lines}
    assert marks["portable"] == [OFF] * 4
    assert marks["rose-irag:portable"] == [OFF, ON, OFF, OFF]
    assert marks["rose-full:portable"] == [OFF, ON, ON, ON]
    assert marks["rose:portable"] == [AS_SET] * 4
    assert found.lines[1].cells[5].interval == "20.0 to 40.0"
    assert len(names) == len(VARIANTS) + 1


def test_what_changes_nothing_is_explained() -> None:
    names = ablation("portable")
    same = ablation_table(report(*(row(name, 0.9 if n > 2 else 0.4) for n, name in enumerate(names))), "t")
    assert same is not None
    (note,) = same.notes
    assert note.startswith("rose-irag:portable and rose-irag-tpe:portable score as portable")
    other = ablation_table(report(*(row(name, 0.2 + n / 10) for n, name in enumerate(names))), "t")
    assert other is not None
    assert other.notes == ()


def test_without_rose_there_is_no_such_table() -> None:
    assert ablation_table(report(row("portable", 0.4), row("lisa", 0.5)), "t") is None

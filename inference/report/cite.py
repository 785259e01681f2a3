"""How to quote a score: a methods paragraph, a LaTeX table, BibTeX; and checking a quoted one by scoring again.

Everything is made from the report alone, so that what is quoted is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.core.errors import ConfigError
from engine.core.schema import Prediction, ScoreReport
from inference.benchmarks.base import Benchmark
from inference.metrics.score import score
from inference.metrics.scorestring import parse
from inference.report.quoted import paper
from inference.report.tables import Table, main_table

_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "–": "--", "−": "$-$"}
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Replayed:
    """A second scoring of published predictions: its report, what differs from the published figures, and the samples
    that were removed from the data since."""

    report: ScoreReport
    differences: tuple[str, ...]
    removed: tuple[str, ...]


def methods(report: ScoreReport) -> str:
    """A paragraph for a methods section."""
    row = next((row for row in report.rows if not row.split), None)
    units, samples = (row.units, row.samples) if row else (0, 0)
    size = f", both masks resized to {report.size_px} pixels square" if report.size_px else ""
    revision = f" (revision {report.revision})" if report.revision else ""
    base = (
        f" Novel and emerging entities are told apart by what {report.base_model} knows." if report.base_model else ""
    )
    lost = sum(one.failed + one.missing for one in report.rows if not one.split and one.truth == report.truths[0].name)
    failures = (
        f" {lost} pairs without a prediction are counted apart; strict figures count them as wrong." if lost else ""
    )
    rule = report.conventions.get(report.convention, "")
    return (
        f"We score on {report.dataset}{revision}, {samples} samples with {units} (image, mask) pairs, data digest "
        f"{report.digest[:16]}. gIoU is the mean over pairs and cIoU the ratio of summed intersections to summed "
        f"unions, in the convention '{report.convention}' ({rule}){size}. Intervals are 95 % bootstrap intervals "
        f"(bias-corrected and accelerated, {report.resamples} resamples) over {report.clusters} clusters of images; "
        f"differences between methods are paired.{base}{failures} Score string: {report.score_string}"
    )


def latex(report: ScoreReport, *, truth: str = "", quoted: bool = False) -> str:
    """Table 1 as LaTeX (booktabs)."""
    table = main_table(report, truth or report.truths[0].name, quoted=quoted)
    return "\n".join(_latex(table, report)) + "\n"


def bibtex(report: ScoreReport) -> str:
    """BibTeX of the paper and of the data that was scored."""
    found = paper()
    authors = found["authors"].replace(", ", " and ")
    key = "".join(char if char.isalnum() else "-" for char in report.dataset.lower()).strip("-")
    year = f"20{report.window[-6:-4]}" if report.window else ""
    lines = [
        f"@inproceedings{{{found['key']},",
        f"  title = {{{{{found['title']}}}}},",
        f"  author = {{{authors}}},",
        f"  booktitle = {{{found['venue']}}},",
        f"  eprint = {{{found['arxiv']}}},",
        "  archivePrefix = {arXiv},",
        "}",
        "",
        f"@misc{{{key},",
        f"  title = {{{{{_escape(report.dataset)}}}}},",
        f"  note = {{revision {_escape(report.revision or 'unnamed')}, sha256 {report.digest[:16]}}},",
        *([f"  year = {{{year}}},"] if year else []),
        "}",
    ]
    return "\n".join(lines) + "\n"


def replay(
    text: str,
    published: ScoreReport,
    benchmark: Benchmark,
    predictions: Mapping[str, Iterable[Prediction]],
) -> Replayed:
    """Score published predictions again under the conditions of a score string and compare every overall figure.

    Rows that were removed from the data since are named, and their predictions are left out; then figures may differ.
    Raises `ConfigError` where the string is not the report's, or where the data has another digest without any row
    being removed.
    """
    wanted = parse(text)
    if text.strip() != published.score_string:
        raise ConfigError(f"the report is of '{published.score_string}', not of '{text.strip()}'")
    have = {sample.id for sample in benchmark.without_images()}
    removed = tuple(one.id for one in published.samples if one.id not in have)
    if not benchmark.digest.startswith(wanted.digest) and not removed:
        raise ConfigError(
            f"the data at hand has the digest {benchmark.digest[:16]}, the string says {wanted.digest}: "
            f"fetch {wanted.dataset} at {wanted.revision or 'the revision of the report'}"
        )
    kept = {name: (one for one in found if one.sample_id in have) for name, found in predictions.items()}
    again = score(
        benchmark,
        kept,
        convention=published.convention,
        truth_name=published.truths[0].name,
        seed=wanted.seed,
        size_px=wanted.size_px,
        resamples=published.resamples,
        novelty_model=wanted.base_model,
    )
    return Replayed(again, tuple(_differences(published, again)), removed)


def _differences(published: ScoreReport, again: ScoreReport) -> Iterator[str]:
    truth = published.truths[0].name
    for row in published.rows:
        if row.truth != truth or row.split:
            continue
        try:
            other = again.row(row.segmenter, truth=truth)
        except KeyError:
            yield f"{row.segmenter}: there are no predictions to score again"
            continue
        for name, estimate in row.figures.items():
            value = other.value(name)
            if name in ("judged", "accuracy", "answer_f1") and value is None:
                continue
            if _rounded(estimate.value) != _rounded(value):
                yield f"{row.segmenter} {name}: published {_rounded(estimate.value)}, now {_rounded(value)}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _latex(table: Table, report: ScoreReport) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield r"\begin{tabular}{" + "".join("r" if column.numeric else "l" for column in table.columns) + "}"
    yield r"\toprule"
    heads = [f"{column.group} {column.title}".strip() for column in table.columns]
    yield " & ".join(_escape(head) for head in heads) + r" \\"
    yield r"\midrule"
    kind = table.lines[0].kind if table.lines else ""
    for line in table.lines:
        if line.kind != kind:
            yield r"\midrule"
            kind = line.kind
        yield " & ".join(_escape(cell.full) for cell in line.cells) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    notes = " ".join(f"{note[0].upper()}{note[1:]}." for note in table.notes)
    string = rf"\texttt{{{_escape(report.score_string)}}}"
    yield rf"\caption{{Scores on {_escape(report.dataset)}. {_escape(notes)} {string}}}"
    yield r"\end{table}"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)

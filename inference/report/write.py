"""Writing a report: `report.json`, `report.md`, and `report.html`, one file that needs nothing else.

The figures are made in `inference.metrics`; here they are only laid out. The page opens from a folder without a
network: styles, script, thumbnails and masks are inside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.schema import Prediction, ScoreReport
from engine.core.store import write_atomic
from inference.benchmarks.base import Benchmark
from inference.metrics.registry import METRICS
from inference.metrics.score import Truth
from inference.report.ablation import ablation_table
from inference.report.charts import histogram, size_curve
from inference.report.gallery import Gallery, build
from inference.report.publish import write_report
from inference.report.quoted import paper
from inference.report.tables import (
    Table,
    comparison_table,
    figures_table,
    main_table,
    mixture_table,
    parts_table,
)
from inference.report.text import markdown

if TYPE_CHECKING:
    import jinja2

GALLERY = 2000


@dataclass(frozen=True, slots=True)
class Paths:
    """The files that were written."""

    json: Path
    markdown: Path
    html: Path


def write(
    report: ScoreReport,
    folder: Path,
    *,
    benchmark: Benchmark | None = None,
    predictions: Mapping[str, Iterable[Prediction]] | None = None,
    truths: Mapping[str, Truth] | None = None,
    gallery: int = GALLERY,
    quoted: bool = True,
    costs: bool = False,
) -> Paths:
    """Write the three files into `folder`.

    With `benchmark` and `predictions` (and the other `truths` that were scored) the page has a gallery of at most
    `gallery` samples. `quoted` shows the paper's rows beside the measured ones, `costs` names the page of
    `costs` that lies beside. The same report gives the same bytes.
    Raises `TerminalError` where the folder cannot be written.
    """
    pictures = Gallery([], [], 0)
    if benchmark is not None and predictions is not None and gallery > 0:
        pictures = build(report, benchmark, predictions, truths=truths, limit=gallery)
    titles = {name: found.title for name, found in METRICS.items()}
    paths = Paths(folder / "report.json", folder / "report.md", folder / "report.html")
    write_report(report, paths.json)
    write_atomic(paths.markdown, markdown(report, titles=titles, quoted=quoted).encode())
    write_atomic(paths.html, _page(report, pictures, titles, quoted, costs).encode())
    return paths


def environment() -> jinja2.Environment:
    """The templates of this package, with the filter `json` for script elements."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("inference.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["json"] = _json
    return found


def _page(report: ScoreReport, pictures: Gallery, titles: dict[str, str], quoted: bool, costs: bool) -> str:
    sections = [
        {
            "name": truth.name,
            "about": truth.description,
            "tables": [
                table
                for table in (
                    main_table(report, truth.name, quoted=quoted and number == 0),
                    mixture_table(report, truth.name, quoted=quoted and number == 0),
                    ablation_table(report, truth.name, quoted=quoted and number == 0),
                    comparison_table(report, truth.name),
                )
                if table is not None
            ],
            "more": _more(report, truth.name, titles),
            "histogram": histogram(report, truth.name),
            "size_curve": size_curve(report, truth.name),
        }
        for number, truth in enumerate(report.truths)
    ]
    page: str = (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            sections=sections,
            pictures=pictures,
            segmenters=[info.name for info in report.segmenters],
            metrics=METRICS.values(),
            quoted=quoted,
            costs=costs,
            same_data=report.dataset == paper()["dataset"],
        )
    )
    return page


def _more(report: ScoreReport, truth: str, titles: dict[str, str]) -> list[Table]:
    parts = parts_table(report, truth)
    return [*([parts] if parts else []), figures_table(report, truth, titles)]


def _json(value: Any) -> Any:
    """JSON that may stand in a script element: no "<" that could end it."""
    import markupsafe

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return markupsafe.Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))

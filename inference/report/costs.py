"""What each module took per sample: seconds, US dollars and tokens, as a table of its own beside the report.

Times differ from run to run, so none of this stands in `report.json`, `report.md` or `report.html`: those are the same
bytes for the same predictions. Replies and searches that were recorded before cost nothing, and their seconds are those
of reading a file: what a first run cost stands in the report of the first run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.schema import Timing
from engine.core.store import write_atomic
from inference.report.tables import Cell, Column, Line, Table

#: The order in which a sample meets the modules; others come after, by name.
ORDER = ("websense", "irag", "search_chat", "tpe", "segmenter", "vpe")
ALL = "all"


@dataclass(frozen=True, slots=True)
class ModuleCost:
    """One module of one segmenter over `samples` samples it was used on, of `of` in all.

    Seconds and money are per sample that used it; `module` "all" sums a sample's modules. Seconds of retrieval overlap
    with each other and with the models', so that they do not add up to the time of a run.
    """

    segmenter: str
    module: str
    samples: int
    of: int
    seconds_mean: float
    seconds_median: float
    seconds_p95: float
    usd: float
    tokens_in: float
    tokens_out: float


def module_costs(timings: Iterable[Timing], *, samples: int) -> list[ModuleCost]:
    """The costs of one segmenter's modules from its samples' timings."""
    own: dict[tuple[str, str], dict[str, list[float]]] = {}
    for timing in timings:
        for module in (timing.module, ALL):
            spent = own.setdefault((timing.segmenter, module), {}).setdefault(timing.sample_id, [0.0] * 4)
            for place, value in enumerate((timing.seconds, timing.usd, timing.tokens_in, timing.tokens_out)):
                spent[place] += value
    rows = []
    for (segmenter, module), found in sorted(own.items(), key=lambda item: (item[0][0], _order(item[0][1]))):
        table = np.array(list(found.values()), np.float64)
        rows.append(
            ModuleCost(
                segmenter=segmenter,
                module=module,
                samples=len(table),
                of=samples,
                seconds_mean=float(table[:, 0].mean()),
                seconds_median=float(np.median(table[:, 0])),
                seconds_p95=float(np.percentile(table[:, 0], 95)),
                usd=float(table[:, 1].mean()),
                tokens_in=float(table[:, 2].mean()),
                tokens_out=float(table[:, 3].mean()),
            )
        )
    return rows


def costs_table(costs: Sequence[ModuleCost]) -> Table:
    """The costs as a table."""
    columns = (
        Column("Method", numeric=False),
        Column("Module", numeric=False),
        Column("samples"),
        Column("mean", "seconds per sample"),
        Column("median", "seconds per sample"),
        Column("p95", "seconds per sample"),
        Column("US$ per sample"),
        Column("in", "tokens per sample"),
        Column("out", "tokens per sample"),
    )
    lines = [
        Line(
            (
                Cell(cost.segmenter, cost.segmenter),
                Cell(cost.module, cost.module),
                Cell(f"{cost.samples}/{cost.of}", cost.samples),
                *(Cell(f"{s:.4f}", s) for s in (cost.seconds_mean, cost.seconds_median, cost.seconds_p95)),
                Cell(f"{cost.usd:.6f}", cost.usd),
                *(Cell(f"{count:.0f}", count) for count in (cost.tokens_in, cost.tokens_out)),
            )
        )
        for cost in costs
    ]
    notes = (
        "what was recorded before costs nothing, and neither does a model whose price is not in [llm.prices]",
        "retrieval of several samples overlaps, so that seconds do not add up to the time of a run",
    )
    return Table("Seconds and cost per module and sample", columns, tuple(lines), notes)


def write_costs(costs: Sequence[ModuleCost], folder: Path) -> None:
    """`costs.json`, `costs.md` and `costs.html` in a folder."""
    from inference.report.text import markdown_table
    from inference.report.write import environment

    table = costs_table(costs)
    told = json.dumps([asdict(cost) for cost in costs], indent=1, sort_keys=True)
    write_atomic(folder / "costs.json", (told + "\n").encode())
    text = f"# {table.title}\n\n{markdown_table(table)}\n\n" + "".join(f"*{note}.*\n" for note in table.notes)
    write_atomic(folder / "costs.md", text.encode())
    write_atomic(folder / "costs.html", environment().get_template("costs.html.j2").render(table=table).encode())


def read_costs(folder: Path) -> list[ModuleCost]:
    """The costs that lie in a report's folder; empty if there are none."""
    try:
        told: list[dict[str, Any]] = json.loads((folder / "costs.json").read_text(encoding="utf-8"))
        return [ModuleCost(**row) for row in told]
    except (OSError, ValueError, TypeError):
        return []


def _order(module: str) -> tuple[int, str]:
    if module == ALL:
        return len(ORDER) + 1, module
    return (ORDER.index(module) if module in ORDER else len(ORDER)), module

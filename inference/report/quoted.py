"""Tables 1 to 3 of the ROSE paper as stored data, shown beside measured rows and marked as quoted.

The figures are percent, as printed. Their metric convention and their handling of failures are not published, so
they are for orientation; a measured row is never compared with them by a test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

TableNumber = Literal["1", "2", "3"]


@dataclass(frozen=True, slots=True)
class QuotedRow:
    """A row of a paper's table. `figures` maps a part ("novel", "overall", "ReasonSeg") to (gIoU, cIoU) in percent,
    None where a figure is not published; `source` says where the figures were read."""

    method: str
    retrieval: bool
    accuracy: float | None
    figures: dict[str, tuple[float | None, float | None]]
    source: str


@cache
def _stored() -> dict[str, Any]:
    text = files("inference.report").joinpath("data/paper_tables.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def paper() -> dict[str, str]:
    """Title, authors, venue and arXiv number of the quoted paper, and the data its table 1 is of."""
    found: dict[str, str] = _stored()["paper"]
    return found


def source_notes() -> dict[str, str]:
    """What each `source` of a quoted row means."""
    found: dict[str, str] = _stored()["sources"]
    return found


def quoted_rows(table: TableNumber) -> tuple[QuotedRow, ...]:
    """The rows of a table in its order."""
    rows = []
    for raw in _stored()["tables"][table]:
        parts = {key: value for key, value in raw.items() if isinstance(value, dict)}
        rows.append(
            QuotedRow(
                method=raw["method"],
                retrieval=raw["retrieval"],
                accuracy=raw.get("accuracy"),
                figures={key: (value["giou"], value["ciou"]) for key, value in parts.items()},
                source=raw["from"],
            )
        )
    return tuple(rows)

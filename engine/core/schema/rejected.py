"""The record of an item that was left out, and the funnel that counts them."""

from __future__ import annotations

from pydantic import Field

from engine.core.schema.base import Record, Value
from engine.core.schema.codes import Code, Stage


class Rejected(Record):
    """An item that a stage left out. `item` is its id or URL, `parent` what it belonged to (an article's URL)."""

    item: str
    stage: Stage
    code: Code
    detail: str = ""
    parent: str = ""
    source: str = ""


class FunnelStep(Value):
    """Counts of one stage: how many items came in, how many went on, and the losses by code."""

    stage: str
    found: int
    kept: int
    rejected: dict[str, int] = Field(default_factory=dict)

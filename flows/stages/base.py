"""What all stages share: the small reference that a stage returns, and cutting work into shards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.core.schema import Record, Rejected
from engine.core.store import StageDir

In = TypeVar("In")
Out = TypeVar("Out", bound=Record)
Result = Record | Rejected


@dataclass(frozen=True, slots=True)
class Done:
    """A finished stage: small enough to travel through Prefect. `fresh` is False if it was finished before."""

    stage: str
    key: str
    path: str
    found: int
    kept: int
    fresh: bool = True
    note: str = ""


def done(stage: str, place: StageDir, *, fresh: bool, note: str = "") -> Done:
    step = place.funnel()
    return Done(stage, place.path.name, str(place.path), step.found, step.kept, fresh, note)


def split(results: Sequence[Result], kind: type[Out]) -> tuple[list[Out], list[Rejected]]:
    """Kept and rejected apart."""
    kept = [item for item in results if isinstance(item, kind)]
    lost = [item for item in results if isinstance(item, Rejected)]
    return kept, lost


def clock(started: float) -> dict[str, Any]:
    """What goes to `run.json`: never part of a digest."""
    return {"seconds": round(time.monotonic() - started, 3), "finished_at": datetime.now(UTC).isoformat()}


def batches(items: Sequence[In], size: int) -> list[tuple[In, ...]]:
    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]

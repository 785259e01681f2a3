"""What all stages share: the small reference that a stage returns, and cutting work into shards."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.core.errors import RefusedError
from engine.core.schema import Record, Rejected
from engine.core.store import StageDir, locked
from flows import console

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


#: One shard's records, what was rejected, and what else goes to its `run.json`.
Shard = tuple[Sequence[Record], Sequence[Rejected], Mapping[str, Any]]


async def by_shards(
    where: StageDir,
    shards: Iterable[tuple[int, Sequence[In]]],
    work: Callable[[Sequence[In]], Awaitable[Shard]],
    *,
    label: str,
    total: int,
) -> int:
    """Make the shards of these numbers one after the other, each committed by itself; how many items were done here.

    A shard is locked while it is made: one that another process holds or has finished is left to it.
    """
    items_done = 0
    with console.bar(label, total) as bar:
        for index, items in shards:
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(locked(where.path / f".shard-{index:05d}.lock", wait_s=0.1))
                except RefusedError:
                    continue
                if not where.shard_done(index):
                    began = time.monotonic()
                    kept, lost, run = await work(items)
                    where.commit_shard(index, kept, lost, run={**clock(began), **run})
                    items_done += len(items)
            bar.step(len(items))
    return items_done

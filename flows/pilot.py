"""What a whole window would take, from a pilot of some of its links: rows, money, hours.

A pilot takes some links of every publisher, so the estimate is only as good as those are like the rest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.core.schema import Code
from engine.core.store import StageDir
from flows.run import Run
from flows.stages import annotate, ask, collect, snapshot


@dataclass(frozen=True, slots=True)
class WholeWeek:
    """The estimate: `links` of which the pilot took `taken`, and what follows if the rest is alike. Dollars are None
    where nothing was paid for (or no price is known)."""

    taken: int
    links: int
    rows: int
    usd: float | None
    annotate_h: float

    def sentence(self) -> str:
        """The estimate in one line."""
        money = "no money" if self.usd is None else f"${self.usd:.2f}"
        return (
            f"a whole week has {self.links} links: about {self.rows} rows, {money} and {self.annotate_h:.1f} h of "
            f"masks on this machine, if the rest is like these {self.taken}"
        )

    def plain(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return asdict(self)


def whole_week(run: Run) -> WholeWeek | None:
    """The estimate after a pilot; None for a whole window, or while the pilot is not through its masks."""
    questions, masks = ask.place(run), annotate.place(run)
    built = snapshot.manifest(snapshot.folder(run))
    if run.config.collect.limit is None or questions is None or masks is None or not masks.finished or built is None:
        return None
    found = collect.place(run).path / "found"
    step = StageDir(found).funnel()
    taken, links = step.kept, step.kept + step.rejected.get(Code.LIMIT.value, 0)
    if not taken:
        return None
    share = links / taken
    paid = StageDir(questions.path).run().get("ledger", {}).get("total", {}).get("usd")
    seconds = sum(StageDir(path).run().get("seconds", 0.0) for path in sorted((masks.path / "shards").glob("*")))
    return WholeWeek(taken, links, round(built.rows * share), paid * share if paid else None, seconds * share / 3600)

"""What a past window can still be had from, and what it would cost: for the plan of a backfill. Reads the store only.

Feeds forget. A past week can be had from what the harvest remembered, and from sources that reach back by themselves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from flows.run import Run
from flows.stages import ask, collect

#: How far each type of source reaches into the past by itself; types of plugins are not known here.
REACH = {
    "feed": "only what the harvest remembered",
    "google_news": "asked by date, the service keeps to it loosely",
    "sitemap": "as far as the publisher's sitemaps",
    "gdelt": "since 2017",
    "archive": "what the archive holds",
}


@dataclass(frozen=True, slots=True)
class Prospect:
    """One source for one window: links that the harvest remembered, and how far the source itself reaches."""

    source: str
    type: str
    remembered: int
    reach: str

    @property
    def empty(self) -> bool:
        """Whether nothing can come of it: a feed without memory."""
        return self.type == "feed" and self.remembered == 0

    def words(self) -> str:
        memory = f"{self.remembered} links remembered" if self.remembered else "nothing remembered"
        return f"{self.source} ({self.type}): {memory}; {self.reach}"


def prospects(run: Run) -> list[Prospect]:
    """What each active source may give for the run's window."""
    from engine.news.harvest import Harvested

    memory = Harvested(run.home.harvest)
    return [
        Prospect(
            row.name,
            row.type,
            len(memory.links(run.window, [row.name])),
            REACH.get(row.type, "see the plugin's documentation"),
        )
        for row in run.config.source
        if not row.paused
    ]


def expected_usd(run: Run, per_window: float | None) -> float | None:
    """US dollars that the window's questions would likely cost: planned from its articles where they are there, else
    what finished windows cost on average; None where neither is known."""
    from engine.questions.deps import needs_chat

    where = ask.place(run)
    if not needs_chat(run.config.ask) or (where is not None and where.finished):
        return 0.0
    if collect.place(run).finished:
        told = [one.usd for one in ask.estimates(run)]
        return None if None in told else sum(usd for usd in told if usd is not None)
    return per_window


def spent_per_window(home: Path) -> float | None:
    """Mean US dollars that the question stages of finished windows cost; None if there is none."""
    spent = []
    for path in sorted(home.glob("windows/*/ask/*/run.json")):
        try:
            spent.append(float(json.loads(path.read_text(encoding="utf-8"))["ledger"]["total"]["usd"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a stage of an older version, or one that asked no model
    return sum(spent) / len(spent) if spent else None

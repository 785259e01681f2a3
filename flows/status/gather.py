"""Everything that the screen shows, gathered once: the terminal, the page and the JSON tell the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from flows.status.facts import (
    Candidates,
    Cost,
    Score,
    candidates,
    cost,
    keys,
    open_takedowns,
    scores,
)
from flows.status.sources import Source, source_states
from flows.status.weeks import Week, medians, read_weeks

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.snapshot.verdicts import Reviewed


@dataclass(frozen=True, slots=True)
class HubState:
    """Where the snapshot is published: `equal` None where nothing is to be published. `note` says what is known."""

    repo: str = ""
    equal: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a home at a moment. `week` is its latest window, None in an empty one."""

    home: str
    now: datetime
    has_config: bool
    weeks: list[Week]
    week: Week | None
    usual: dict[str, float | None]
    sources: list[Source]
    review: Reviewed | None
    review_is_current: bool
    candidates: Candidates | None
    scores: list[Score]
    anchors: tuple[str, ...]
    cost: Cost
    monthly_usd: float | None
    portable: bool
    keys: list[tuple[str, int]]
    warn_days: int
    takedowns: list[int]
    hub: HubState
    next: str = ""
    problems: list[str] = field(default_factory=list)
    gaps: int = 0


def gather(config: Config, *, now: datetime | None = None, ask_hub: bool = False) -> Status:
    """Read the home. Only `ask_hub` goes over the network."""
    from flows.status.next import hub_state, next_command, review_of

    moment = (now or datetime.now(UTC)).replace(microsecond=0)
    weeks = read_weeks(config.home)
    week = weeks[-1] if weeks else None
    problems: list[str] = []
    sources, gaps = source_states(config, weeks, now=moment)
    review = review_of(config.home, week, problems)
    figures = scores(config.home, week) if week else []
    if week is not None and not figures:
        # a report of an earlier revision is none of this one
        week = weeks[-1] = replace(week, done=week.done - {"score"})
    told = Status(
        home=str(config.home),
        now=moment,
        has_config=bool(config.source),
        weeks=weeks,
        week=week,
        usual=medians(weeks, len(weeks) - 1) if weeks else {},
        sources=sources,
        gaps=gaps,
        review=review,
        review_is_current=bool(week and review and review.revision == week.snapshot.get("revision")),
        candidates=candidates(config.home, week) if week else None,
        scores=figures,
        anchors=config.score.anchors,
        cost=cost(config.home, week, now=moment),
        monthly_usd=config.llm.monthly_usd,
        portable="portable" in (config.annotate.detector, config.annotate.mask_model),
        keys=keys(config.credentials.expires, today=moment.date()),
        warn_days=config.credentials.warn_days,
        takedowns=open_takedowns(config.home, now=moment),
        hub=hub_state(config, week, ask=ask_hub),
        problems=problems,
    )
    return replace(told, next=next_command(told, config))


def plain(status: Status) -> dict[str, Any]:
    """The same as JSON values."""
    from flows.review.run import plain as review_plain

    def stages(week: Week) -> dict[str, dict[str, Any]]:
        columns = {"collect": "articles", "ask": "questions", "annotate": "masks", "snapshot": "rows"}
        return {
            stage: {"finished": stage in week.done, "kept": week.counts.get(columns.get(stage, "")) or 0}
            for stage in ("collect", "ask", "annotate", "snapshot", "push", "score")
        }

    week = status.week
    return {
        "home": status.home,
        "at": status.now.isoformat(),
        "window": week.label if week else None,
        "revision": week.snapshot.get("revision") if week else None,
        "counts": dict(week.counts) if week else {},
        "median_of_four": status.usual,
        "rejects": dict(sorted(week.lost.items(), key=lambda item: (-item[1], item[0]))) if week else {},
        "sources": [asdict(source) for source in status.sources],
        "harvest_gaps": status.gaps,
        "review": review_plain(status.review),
        "candidates": asdict(status.candidates) if status.candidates else None,
        "scores": [asdict(score) for score in status.scores],
        "anchors": list(status.anchors),
        "cost": asdict(status.cost),
        "monthly_usd": status.monthly_usd,
        "keys": [{"name": name, "days": days} for name, days in status.keys],
        "takedowns": {"open": len(status.takedowns), "days": status.takedowns},
        "hub": asdict(status.hub),
        "windows": [
            {"window": w.label, "pilot": w.pilot, "stages": stages(w), "counts": w.counts} for w in status.weeks
        ],
        "problems": status.problems,
        "next": status.next,
    }

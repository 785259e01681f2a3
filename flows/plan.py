"""What of a window is done and what is missing, read from the store alone: no prefect, no models, no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flows.run import Run
from flows.stages import annotate, ask, collect, push, score, snapshot

STAGES = ("collect", "ask", "annotate", "snapshot", "push", "score")


@dataclass(frozen=True, slots=True)
class State:
    """One stage of one window. `wanted` is False for a push without a repository."""

    stage: str
    finished: bool
    path: Path | None = None
    found: int = 0
    kept: int = 0
    wanted: bool = True


def states(run: Run) -> list[State]:
    """The stages of a window in order; after the first unfinished one nothing more is known."""
    found: list[State] = []
    for name, place in (("collect", collect.place(run)), ("ask", ask.place(run)), ("annotate", annotate.place(run))):
        if place is None or not place.finished:
            found.append(State(name, False, place.path if place else None))
        else:
            step = place.funnel()
            found.append(State(name, True, place.path, step.found, step.kept))
    there = snapshot.finished(run)
    built = snapshot.current(run) if there else None
    thin = there and built is None
    found.append(State("snapshot", there, snapshot.folder(run), 0, built.rows if built else 0))
    found.append(State("push", push.finished(run), None, wanted=bool(push.repository(run)) and not thin))
    found.append(
        State("score", score.finished(run), score.folder(run), wanted=not thin and bool(run.config.score.segmenters))
    )
    return found


def all_done(run: Run) -> bool:
    """Whether a refresh of this window would do nothing."""
    return all(state.finished or not state.wanted for state in states(run))

"""One window of news becomes a published, scored snapshot. This is the whole system on one screen.

    collect    news of the window, with its images                engine.news
    ask        questions about named entities in the images       engine.questions
    annotate   the entity's mask, on GPU workers or here          segmentation
    snapshot   the dated dataset, loaded back and compared        engine.snapshot
    push       to the Hub, where the config names a repository    engine.snapshot
    score      ROSE and the baselines over the snapshot           inference

Each step looks into the store first and does only what is missing, so a run may be killed, repeated or started
twice. Prefect decides when and where; nothing here knows how a step works.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.annotate import annotate_here
from flows.run import Run, open_run
from flows.schedule import scheduled_window
from flows.stages import annotate, ask, collect, push, score, snapshot
from flows.stages.base import Done
from flows.summary import publish
from flows.tasks import step


@flow(name="refresh", flow_run_name="refresh-{window}", persist_result=False)
def refresh(
    window: str | None = None,
    config: str | None = None,
    overrides: dict[str, Any] | None = None,
    revise: bool = False,
) -> list[Done]:
    """Refresh one window; without one, the latest finished week before the scheduled start."""
    path = Path(config) if config else None
    return refresh_run(open_run(window or scheduled_window(), config_path=path, overrides=overrides, revise=revise))


def refresh_run(run: Run) -> list[Done]:
    """The steps in order, as tasks of the running flow."""
    label = run.window.label
    steps = [
        step(f"collect {label}", collect.do, run),
        step(f"ask {label}", ask.do, run),
    ]
    annotate_here(run)
    steps += [
        step(f"annotate {label}", annotate.finish, run),
        step(f"snapshot {label}", snapshot.do, run),
        step(f"push {label}", push.do, run),
        step(f"score {label}", score.do, run),
    ]
    publish(run, steps)
    return steps

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

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import deployment, flow_run

from flows import log
from flows.annotate import annotate_here, annotate_there
from flows.doctor.examine import refuse_unfit
from flows.notify import ping
from flows.run import Run, open_run
from flows.schedule import run_name, scheduled_window
from flows.score import score_here, score_there
from flows.stages import annotate, ask, collect, push, snapshot
from flows.stages.base import Done
from flows.summary import publish
from flows.tasks import patiently, step


@flow(name="refresh", flow_run_name=run_name, persist_result=False)
def refresh(
    window: str | None = None,
    config: str | None = None,
    overrides: dict[str, Any] | None = None,
    revise: bool = False,
) -> list[Done]:
    """Refresh one window; without one, the latest finished week before the scheduled start."""
    path = Path(config) if config else None
    run = open_run(window or scheduled_window(path), config_path=path, overrides=overrides, revise=revise)
    if deployment.id:  # the command has looked already, before it started a server
        refuse_unfit(run)
    with log.about(window=run.window.label, snapshot=run.snapshot_name, flow_run=str(flow_run.id or "")):
        return _steps(run, config, overrides)


def _steps(run: Run, config: str | None, overrides: dict[str, Any] | None) -> list[Done]:
    # a worker's run waits for another one of the same window; a command in somebody's shell refuses at once
    wait_s = run.config.flows.busy_wait_s if deployment.id else 0.0

    def do(name: str, body: Callable[[Run], Done]) -> Done:
        done: Done = step(f"{name} {run.window.label}", partial(patiently, wait_s=wait_s), body, run)
        ping(run, name)
        return done

    steps = [do("collect", collect.do), do("ask", ask.do)]
    if run.config.flows.annotate_deployment:
        annotate_there(run, config, overrides)
    else:
        annotate_here(run)
    steps += [do("annotate", annotate.finish), do("snapshot", snapshot.do), do("push", push.do)]
    if run.config.flows.score_deployment:
        steps.append(score_there(run, config, overrides, wait_s=wait_s))
    else:
        steps.append(score_here(run, wait_s=wait_s))
    ping(run, "score")
    publish(run, steps)
    return steps

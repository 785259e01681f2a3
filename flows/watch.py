"""Waiting for runs on other workers, without waiting for the dead.

A worker that is killed leaves its run "Running" on the server for ever. The store knows better: a shard that is being
made is locked, and the lock of a dead process is free at once. So runs are lost when for a while nothing is held and
nothing gets finished; they are marked as crashed, and their shards are sent out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State, StateType
from prefect.states import Cancelled, Crashed

from engine.core.errors import TransientError
from flows import console
from flows.embedded.inline import asking_the_server, insist
from flows.run import Run

LOOK_EVERY_S = 2.0
WAITING = (StateType.SCHEDULED, StateType.PENDING)


def send(run: Run, deployment: str, parameters: dict[str, Any]) -> Any:
    """Create a flow run of a deployment for the run's window, and return it."""
    from prefect.deployments import run_deployment

    name = f"{deployment.partition('/')[0]}-{run.window.label}"
    with asking_the_server():
        return insist(
            partial(run_deployment, deployment, parameters=parameters, flow_run_name=name, timeout=0, as_subflow=False)
        )


def watch(
    run: Run, flow_runs: list[Any], *, what: str, deployment: str, progress: Callable[[], tuple[int, bool]]
) -> None:
    """Return when nothing is missing any more, or all these runs have ended or are lost.

    `progress` says how many pieces are missing and whether somebody works on one. Raises `TransientError`, and
    cancels the runs, where no worker takes one for `[flows] annotate_wait_s`.
    """
    settings = run.config.flows
    open_runs: set[UUID] = {flow_run.id for flow_run in flow_runs}
    begun = quiet_since = time.monotonic()
    before = -1
    with asking_the_server(), get_client(sync_client=True) as client:
        while open_runs:
            states = {name: insist(partial(client.read_flow_run, name)).state for name in sorted(open_runs)}
            for name, state in states.items():
                if state is None or state.is_final():
                    open_runs.discard(name)
                    if state is not None and not state.is_completed():
                        console.say(f"  a run of {deployment} ended as {state.name}")
            now = time.monotonic()
            left, held = progress()
            waiting = {name for name in open_runs if _type(states[name]) in WAITING}
            if not left:
                return
            if held or left != before or waiting == open_runs:
                quiet_since, before = now, left
            if open_runs and waiting == open_runs and now - begun > settings.annotate_wait_s:
                _end(client, open_runs, Cancelled(message="no worker took this run in time"))
                raise TransientError(
                    f"no worker of '{deployment}' took the {what} of {run.window.label} within "
                    f"{settings.annotate_wait_s:.0f} s: start one and run this again, what was done before is kept"
                )
            if now - quiet_since > settings.lost_after_s:
                lost = open_runs - waiting
                console.say(f"  {len(lost)} runs of {deployment} make nothing any more: their worker is taken for lost")
                _end(client, lost, Crashed(message="nothing was held or finished for a while: the worker is lost"))
                open_runs -= lost
                quiet_since = now
            if open_runs:
                time.sleep(LOOK_EVERY_S)


def _type(state: State[Any] | None) -> StateType | None:
    return state.type if state is not None else None


def _end(client: SyncPrefectClient, names: set[UUID], state: State[Any]) -> None:
    for name in sorted(names):
        insist(partial(client.set_flow_run_state, name, state, force=True))

"""What a self-hosted Prefect server has to be told once: rules that act when a run falls silent or waits for nobody.

Written through the client by `nest ops install-automations`; doing it again changes what differs and adds nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from engine.core.errors import ConfigError

#: Three heartbeats (`PREFECT_FLOWS_HEARTBEAT_FREQUENCY`, 180 s unless set) may be missed.
SILENT_S = 540
#: A run that no worker took for so long means that nobody looks at its pool.
LATE_S = 6 * 3600
PREFIX = "nest: "


@dataclass(frozen=True, slots=True)
class Installed:
    """One automation and what was done: created, changed, or there already."""

    name: str
    done: str


def wanted(*, silent_s: int = SILENT_S, late_s: int = LATE_S) -> list[Any]:
    """The automations as `prefect.events.AutomationCore`.

    A run that was started and sends neither heartbeat nor end for `silent_s` has lost its worker: it is marked as
    crashed, which frees its slot. One that is late for `late_s` is cancelled, so that runs do not pile up behind a
    pool without workers: the window is found by the next catch-up. Windows of a backfill that wait for their turn are
    not late.
    """
    from prefect.client.schemas.objects import StateType
    from prefect.events import AutomationCore, EventTrigger, Posture, ResourceSpecification
    from prefect.events.actions import CancelFlowRun, ChangeFlowRunState

    # types are said: an update sends only what was set, and an action without its type becomes one that does nothing
    runs = ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"})
    ends = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    # a run that waits for the deployment's slot was looked at: its worker lives and is busy, perhaps for days
    taken = {f"prefect.flow-run.{state}" for state in ("Pending", "Running", "AwaitingConcurrencySlot")}
    return [
        AutomationCore(
            name=f"{PREFIX}a silent run has crashed",
            description="A killed worker leaves its run in state Running; this frees its slot.",
            trigger=EventTrigger(
                type="event",
                match=runs,
                for_each={"prefect.resource.id"},
                after={"prefect.flow-run.heartbeat"},
                expect={"prefect.flow-run.heartbeat", *ends},
                posture=Posture.Proactive,
                threshold=1,
                within=timedelta(seconds=silent_s),
            ),
            actions=[
                ChangeFlowRunState(
                    type="change-flow-run-state",
                    state=StateType.CRASHED,
                    message="no heartbeat any more: the worker is lost",
                    force=True,
                )
            ],
        ),
        AutomationCore(
            name=f"{PREFIX}a run that nobody takes is cancelled",
            description="Nobody works on the pool; the window is found again by the catch-up.",
            trigger=EventTrigger(
                type="event",
                match=runs,
                for_each={"prefect.resource.id"},
                after={"prefect.flow-run.Late"},
                expect={*taken, *ends},
                posture=Posture.Proactive,
                threshold=1,
                within=timedelta(seconds=late_s),
            ),
            actions=[CancelFlowRun(type="cancel-flow-run")],
        ),
    ]


def install(*, silent_s: int = SILENT_S, late_s: int = LATE_S, dry_run: bool = False) -> list[Installed]:
    """Bring the server's automations to what is wanted. Raises `ConfigError` without a server, `TransientError` where
    it does not answer."""
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError("automations live on a Prefect server: set PREFECT_API_URL")
    from flows.embedded.inline import asking_the_server
    from flows.embedded.start import require_server

    require_server(os.environ["PREFECT_API_URL"])
    from prefect.client.orchestration import get_client

    done = []
    with asking_the_server(), get_client(sync_client=True) as client:
        for automation in wanted(silent_s=silent_s, late_s=late_s):
            there = client.read_automations_by_name(automation.name)
            if not there:
                word = "created"
                if not dry_run:
                    client.create_automation(automation)
            elif _same(there[0], automation) and len(there) == 1:
                word = "there already"
            else:
                word = "changed"
                if not dry_run:
                    client.update_automation(there[0].id, automation)
                    for extra in there[1:]:
                        client.delete_automation(extra.id)
            done.append(Installed(automation.name, word))
    return done


def _same(there: Any, automation: Any) -> bool:
    """Whether the stored rule says the same; ids that the server gives do not count."""
    told = [item.model_dump(mode="json", exclude={"id", "created", "updated"}) for item in (there, automation)]
    for value in told:
        value["trigger"] = {k: v for k, v in value["trigger"].items() if k != "id"}
        for name in ("after", "expect", "for_each"):
            value["trigger"][name] = sorted(value["trigger"][name])
    fields = ("name", "description", "enabled", "trigger", "actions")
    return all(told[0][name] == told[1][name] for name in fields)

"""All findings in the order a run would meet them, and what of them refuses a run before it begins.

Keys are looked at, never printed. Nothing is downloaded and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from engine.core.config import Config, load_config
from engine.core.errors import ConfigError
from flows.doctor.asking import encyclopedia, model_endpoint, recogniser, writer
from flows.doctor.finding import Finding
from flows.doctor.keys import expiries
from flows.doctor.machine import deployments, home_folder, packages, prefect, task_runner
from flows.doctor.models import annotator, judge, searches, segmenters
from flows.doctor.publishing import hub
from flows.doctor.sources import sources
from flows.plan import states
from flows.run import Run

Check = Callable[[Config], Iterator[Finding]]
#: What `nest doctor` looks at once the configuration can be read.
ALL: tuple[Check, ...] = (
    home_folder,
    sources,
    writer,
    recogniser,
    encyclopedia,
    model_endpoint,
    task_runner,
    deployments,
    annotator,
    segmenters,
    searches,
    judge,
    hub,
    expiries,
    prefect,
)
#: What a stage needs and can be seen at once: no network, nothing spent.
OF_STAGE: dict[str, tuple[Check, ...]] = {
    "collect": (sources,),
    "ask": (writer, recogniser, encyclopedia),
    "annotate": (annotator,),
    "score": (segmenters, searches, judge),
    "push": (hub,),
}


def examine(path: Path | None) -> list[Finding]:
    """All findings."""
    findings = list(packages())
    try:
        config = load_config(path)
    except ConfigError as error:
        return [*findings, Finding("bad", str(error), "correct the file, 'nest init' writes a fresh one")]
    findings.append(Finding("good", "configuration is valid"))
    for part in ALL:
        findings += part(config)
    return findings


def refuse_unfit(run: Run) -> None:
    """What can be seen at once, for the stages that are still to be done. Raises `ConfigError` with every finding and
    its mend, so that nobody waits for the fifth stage to hear of a missing key."""
    config = run.config
    # what other workers do needs nothing of this machine
    elsewhere = {
        stage
        for stage, deployment in (
            ("annotate", config.flows.annotate_deployment),
            ("score", config.flows.score_deployment),
        )
        if deployment
    }
    findings = [*packages(), *home_folder(config), *task_runner(config), *deployments(config)]
    for state in states(run):
        if state.wanted and not state.finished and state.stage not in elsewhere:
            for check in OF_STAGE.get(state.stage, ()):
                findings += check(config)
    bad = [f"{one.what}" + (f" ({one.mend})" if one.mend else "") for one in findings if one.state == "bad"]
    if bad:
        raise ConfigError("; ".join(bad))

"""Every few hours: remember what the feeds show before they forget it. Cheap, and safe to repeat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from prefect import flow

from engine.core.config import load_config
from flows import console
from flows.stages.harvest import require_an_answer, round_over


@flow(name="harvest", persist_result=False)
def harvest(config: str | None = None, overrides: dict[str, Any] | None = None) -> list[str]:
    """One round over the sources; returns the lines that `nest harvest` prints. Fails where no source answered."""
    settings = load_config(Path(config) if config else None, overrides=overrides)
    report = asyncio.run(round_over(settings))
    lines = list(report.lines())
    for line in lines:
        console.say(line)
    require_an_answer(report)
    return lines

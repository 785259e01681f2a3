"""Every few hours: remember what the feeds show before they forget it. Cheap, and safe to repeat."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.core.config import Config, load_config
from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import next_step, print_json


def harvest_once(config_path: Path | None, *, as_json: bool = False) -> None:
    """One round over the sources, told on stderr."""
    report = asyncio.run(round_over(load_config(config_path)))
    if as_json:
        print_json(asdict(report))
        return
    for line in report.lines():
        console.say(line)
    next_step("nest status")


async def round_over(config: Config, *, now: datetime | None = None) -> Any:
    """One round: asks every source once and adds what is new to the harvest."""
    from engine.news.deps import NewsDeps
    from engine.news.harvest import harvest

    from engine.core.store import Home
    from engine.web.client import WebClient

    if not config.source:
        raise ConfigError("no [[source]] in the configuration: 'nest init' writes a nest.toml with starter sources")
    home = Home(config.home)
    async with WebClient(config.collect, cache=home.cache("http")) as client:
        deps = NewsDeps(fetcher=client, blobs=home.blobs)
        return await harvest(config.source, config.collect, deps=deps, store=home.harvest, now=now or datetime.now(UTC))

"""One round over the sources: links, pages and images are remembered when they are seen. No window is involved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.core.config import Config
from engine.core.errors import ConfigError, TransientError
from engine.core.store import Home
from flows.stages.sources import rows_of


async def round_over(config: Config, *, now: datetime | None = None) -> Any:
    """Ask every source once and add what is new to the harvest; returns `engine.news.harvest.HarvestReport`."""
    from engine.news.deps import NewsDeps
    from engine.news.harvest import harvest
    from engine.web.client import WebClient

    if not config.source:
        raise ConfigError("no [[source]] in the configuration: 'nest init' writes a nest.toml with starter sources")
    home = Home(config.home)
    async with WebClient(config.collect, cache=home.cache("http")) as client:
        deps = NewsDeps(fetcher=client, blobs=home.blobs)
        return await harvest(
            rows_of(config), config.collect, deps=deps, store=home.harvest, now=now or datetime.now(UTC)
        )


def require_an_answer(report: Any) -> None:
    """Raise `TransientError` where every source that was asked failed: nothing was remembered, and a schedule whose
    runs end well all the same would hide it until the feeds have forgotten."""
    failed = [f"{item.source} ({item.failure})" for item in report.sources if item.failure]
    if failed and len(failed) == len(report.sources):
        raise TransientError(
            f"no source could be asked: {', '.join(failed)}. Look at the network, and run the same command again; "
            "'nest sources check' asks each and says what is wrong"
        )

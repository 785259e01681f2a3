"""Whether the configured sources can be any: their types and addresses; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from engine.core.config import Config
from engine.core.errors import ConfigError
from flows.doctor.finding import Finding


def sources(config: Config) -> Iterator[Finding]:
    """Whether there are some, whether each row can be one, and whom publishers can write to."""
    active = [source for source in config.source if not source.paused]
    if not active:
        yield Finding("bad", "no source is configured", "add [[source]] rows, 'nest init' writes some")
    else:
        yield Finding("good", f"{len(active)} sources; 'nest sources check' tries them")
    for words in wrong_sources(config):
        yield Finding("bad", words, "correct its row in nest.toml")
    if "set [collect] user_agent" in config.collect.user_agent or "put your contact" in config.collect.user_agent:
        yield Finding("warn", "the agent string names no contact", "put your address into [collect] user_agent")


def wrong_sources(config: Config) -> Iterator[str]:
    """Sources whose type is not known or whose address cannot be one, in words; nothing is fetched."""
    from engine.news.sources import ready

    for row in config.source:
        try:
            ready(row)
        except ConfigError as error:
            yield str(error) if str(error).startswith("source ") else f"source '{row.name}': {error}"
            continue
        if row.type == "archive":
            if "://" not in row.url and not config.resolve(Path(row.url)).is_file():
                yield f"source '{row.name}': there is no file '{row.url}'"
        elif row.type in ("feed", "sitemap") or row.url:
            parts = _parts(row.url)
            if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
                yield f"source '{row.name}': '{row.url}' is not an address: write https://..."


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None

"""Names of source types to their classes, through the entry points of the distribution; built-ins are known without
installation too. Classes are imported when a name is asked for."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points

from engine.core.config import SourceSection
from engine.core.errors import ConfigError
from engine.news.sources.base import Source
from engine.news.sources.options import check_options

GROUP = "nest.sources"
BUILT_IN = {
    "feed": "engine.news.sources.feed:FeedSource",
    "sitemap": "engine.news.sources.sitemap:SitemapSource",
    "google_news": "engine.news.sources.google_news:GoogleNewsSource",
    "gdelt": "engine.news.sources.gdelt:GdeltSource",
    "archive": "engine.news.sources.archive:ArchiveSource",
}


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, point.value)
    return found


def known_types() -> tuple[str, ...]:
    """Names of all source types, sorted."""
    return tuple(sorted(_table()))


def ready(row: SourceSection) -> Source:
    """The type of a row, whose options have been checked. Raises `ConfigError`."""
    kind = source_type(row.type)
    check_options(row)
    return kind


def source_type(name: str) -> Source:
    """An instance of a source type. Raises `ConfigError` that lists the known names."""
    place = _table().get(name)
    if place is None:
        near = difflib.get_close_matches(name, known_types(), n=1)
        hint = f", did you mean '{near[0]}'?" if near else "."
        raise ConfigError(f"unknown source type '{name}'{hint} Known are {', '.join(known_types())}")
    module, _, attribute = place.partition(":")
    try:
        found: Source = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the source type '{name}' cannot be loaded from {place}: {error}") from error
    return found

"""Where links come from. A source is a declaration in `nest.toml`; a type of source is a class in this package or a
plugin of the entry-point group `nest.sources`."""

from engine.news.sources.base import Source, SourceError
from engine.news.sources.registry import known_types, ready, source_type

__all__ = ["Source", "SourceError", "known_types", "ready", "source_type"]

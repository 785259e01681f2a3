"""The `options` of a `[[source]]` row, checked before anything is asked: unknown names, wrong kinds of values.

Plugins check their own; of them nothing is known here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal

from engine.core.config import SourceSection
from engine.core.errors import ConfigError

Kind = Literal["count", "days", "seconds", "text", "texts"] | tuple[str, ...]

_TERMS: Mapping[str, Kind] = {
    "query": "texts",
    "terms": "texts",
    "language": "text",
    "trends_region": "text",
    "trends_url": "text",
    "pageviews_url": "text",
}
OPTIONS: Mapping[str, Mapping[str, Kind]] = {
    "feed": {},
    "sitemap": {"max_maps": "count", "undated": ("keep", "drop")},
    "google_news": {
        **_TERMS,
        "region": "text",
        "topic": "text",
        "every_days": "count",
        "resolve": ("googlenewsdecoder",),
    },
    "gdelt": {**_TERMS, "country": "text", "domain": "text", "wait_s": "seconds"},
    "archive": {"lag_days": "days", "hosts": "texts"},
}
_SAID = {
    "count": "a whole number of at least 1",
    "days": "a whole number of days, 0 or more",
    "seconds": "a number of seconds, 0 or more",
    "text": "a text",
    "texts": "a text or a list of texts",
}


def check_options(row: SourceSection) -> None:
    """Raises `ConfigError` for an option that a built-in type does not have or that has another kind of value."""
    known = OPTIONS.get(row.type)
    if known is None:
        return
    for name, value in row.options.items():
        kind = known.get(name)
        if kind is None:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f", did you mean '{near[0]}'?" if near else "."
            there = f" There are {', '.join(sorted(known))}" if known else f" The type '{row.type}' has none"
            raise ConfigError(f"source '{row.name}': no option '{name}'{hint}{there}")
        if not _fits(value, kind):
            said = " or ".join(f"'{word}'" for word in kind) if isinstance(kind, tuple) else _SAID[kind]
            raise ConfigError(f"source '{row.name}': options.{name} is {said}, not {value!r}")
    if row.type in ("google_news", "gdelt"):
        from engine.news.terms import known_kinds

        terms = texts(row.options.get("terms", ()))
        known_terms = known_kinds() if terms else ()
        if unknown := [term for term in terms if term not in known_terms]:
            raise ConfigError(f"source '{row.name}': options.terms knows {', '.join(known_terms)}, not '{unknown[0]}'")


def texts(value: object) -> list[str]:
    """A text or a list of texts as a list."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def _fits(value: object, kind: Kind) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(kind, tuple):
        return value in kind
    if kind in ("count", "days"):
        return number and isinstance(value, int) and value >= (kind == "count")
    if kind == "seconds":
        return number and value >= 0  # type: ignore[operator]
    if kind == "text":
        return isinstance(value, str) and bool(value.strip())
    items = [value] if isinstance(value, str) else value
    return isinstance(items, list | tuple) and bool(items) and all(isinstance(i, str) and i.strip() for i in items)

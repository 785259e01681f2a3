"""`[score.options.NAME]`: which settings a segmenter takes and of what kind, so that a misspelt one is told at once."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from engine.core.config import Config
from engine.core.errors import ConfigError

_FAMILY: Mapping[str, type] = {"conversation": str, "forced": bool, "max_new_tokens": int}
_SERVED: Mapping[str, type] = {"timeout_s": float}
#: Built-in segmenter -> its settings; those that are not here take none. Plugins read theirs themselves.
KNOWN: Mapping[str, Mapping[str, type]] = {
    "lisa": _FAMILY,
    "sesame": _FAMILY,
    "read": _FAMILY,
    "sam3": {"threshold": float, "every": bool},
    "seg-zero": {"model": str, "space": str, "prompt": str, "max_tokens": int},
    "llmseg": {"model": str, "passes": int, "max_tokens": int},
    "search-chat": {"model": str},
    **dict.fromkeys(("remote", "seem", "gres", "cris"), _SERVED),
}
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def options_of(name: str, config: Config) -> dict[str, Any]:
    """The settings of a built-in segmenter, each of its kind; numbers may not be negative. Raises `ConfigError`."""
    known = KNOWN.get(name, {})
    found: dict[str, Any] = {}
    for key, value in config.score.options.get(name, {}).items():
        where = f"[score] options.{name}.{key}"
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f", did you mean '{near[0]}'?" if near else f": '{name}' takes {', '.join(known) or 'none'}"
            raise ConfigError(f"{where} is not known{hint}")
        kind = known[key]
        whole = isinstance(value, int) and not isinstance(value, bool)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits and not (kind is float and whole):
            raise ConfigError(f"{where} = {value!r} has to be {_WORDS[kind]}")
        if kind in (int, float) and float(value) < 0:
            raise ConfigError(f"{where} = {value!r} may not be negative")
        found[key] = kind(value)
    return found

"""One thing that was looked at, and how it is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Finding:
    """`state` is good, warn or bad; `mend` is what to do, empty when nothing is."""

    state: Literal["good", "warn", "bad"]
    what: str
    mend: str = ""


def named(make: Callable[[], str]) -> Finding:
    """A good finding of those words, or a bad one where making them says that a name is unknown."""
    try:
        return Finding("good", make())
    except ConfigError as error:
        return Finding("bad", str(error), "correct the name in nest.toml")

"""How a pilot's snapshot is called: the window's name and, behind `.pilot`, the limit of its links. No heavy import."""

from __future__ import annotations

import re

_PILOT = re.compile(r"(?P<name>.*)\.pilot(?P<limit>[1-9]\d{0,250})", re.ASCII)


def pilot_name(name: str, limit: int | None) -> str:
    """The name of a window's snapshot under a limit; without one the name itself."""
    return name if limit is None else f"{name}.pilot{limit}"


def split_pilot(name: str) -> tuple[str, int | None]:
    """(the window's part, the limit) of a pilot's name; any other name itself, and None."""
    match = _PILOT.fullmatch(name)
    return (match["name"], int(match["limit"])) if match else (name, None)

"""/.well-known/tdmrep.json: a site's reservation of text and data mining (TDM Reservation Protocol, W3C group report).

The file is a list of rules; the first whose location matches a URL's path counts. Where it reserves, nothing is
fetched: a response header or meta tag could say otherwise for one page, but the strictest word is kept to. No file, or
one that is none, reserves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.web.errors import FetchError
from engine.web.origins import OriginBook

PLACE = "/.well-known/tdmrep.json"
MAX_BYTES = 512_000
MAX_RULES = 10_000
MAX_LOCATION_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Rule:
    """`location` is a path with `*` and a closing `$`, as in robots.txt; `policy` the address of the terms, if any."""

    location: str
    reserved: bool
    policy: str = ""

    def matches(self, path: str) -> bool:
        """Whether a path begins as the location says. Leftmost finds of the parts between stars suffice, so that no
        rule takes long on any path."""
        first, *rest = self.location.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        if self.location.endswith("$"):
            if not rest:
                return at == len(path)
            last = rest.pop()
            if len(path) - len(last) < at or not path.endswith(last):
                return False
            path = path[: len(path) - len(last)]
        for part in rest:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return True


@dataclass(frozen=True, slots=True)
class Reservations:
    """The rules of one origin in the file's order."""

    rules: tuple[Rule, ...] = ()

    def sign(self, url: str) -> str:
        """What reserves a URL, or an empty string."""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        rule = next((rule for rule in self.rules if rule.matches(path)), None)
        if rule is None or not rule.reserved:
            return ""
        return f"tdmrep.json: reserved, see {rule.policy}" if rule.policy else "tdmrep.json: reserved"


class ReservationBook:
    """Reservations by origin. `load` returns the file's bytes, or None where there is none; what it raises as
    `FetchError` counts as no file (robots.txt has already shown whether the server answers)."""

    def __init__(self, load: Callable[[str], Awaitable[bytes | None]]) -> None:
        self._load = load
        self._book = OriginBook(self._read)

    async def sign(self, url: str) -> str:
        """What reserves a URL, or an empty string."""
        return (await self._book.of(url)).sign(url)

    async def _read(self, origin: str) -> Reservations:
        try:
            body = await self._load(f"{origin}{PLACE}")
        except FetchError:
            return Reservations()
        return parse(body) if body else Reservations()

    async def aclose(self) -> None:
        await self._book.aclose()


def parse(body: bytes) -> Reservations:
    """Read a file; rules that are none are passed over, and a file that is no JSON list has none."""
    try:
        raw = json.loads(body[:MAX_BYTES].decode("utf-8", errors="replace").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return Reservations()
    rules = []
    for item in raw[:MAX_RULES] if isinstance(raw, list) else ():
        if not isinstance(item, dict):
            continue
        location, value = item.get("location"), item.get("tdm-reservation")
        # other values are protocol errors: as good as no rule
        if not isinstance(location, str) or len(location) > MAX_LOCATION_CHARS or str(value) not in ("0", "1"):
            continue
        policy = item.get("tdm-policy")
        rules.append(
            Rule(
                location if location.startswith(("/", "*")) else f"/{location}",
                str(value) == "1",
                policy[:200] if isinstance(policy, str) else "",
            )
        )
    return Reservations(tuple(rules))

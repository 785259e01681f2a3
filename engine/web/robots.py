"""robots.txt (RFC 9309), read once per origin and run, through protego.

Unavailable (4xx) means allowed, unreachable (5xx, no answer) means disallowed, as the RFC asks. How the file is
fetched is handed in, so that it goes through the same guard and cache as everything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from engine.core.schema import Code
from engine.web.errors import FetchError
from engine.web.optout import AI_AGENTS
from engine.web.origins import OriginBook

MAX_ROBOTS_BYTES = 512_000
#: Longest crawl-delay that is kept to; above, a week's articles would not fit into a week.
MAX_CRAWL_DELAY_S = 60.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What robots.txt of one origin says; `parsed` None means that nothing is forbidden."""

    parsed: Any | None
    unreachable: FetchError | None = None

    def check(self, url: str, agent: str) -> None:
        """Raises `FetchError`: `ROBOTS_DISALLOWED`, or why robots.txt could not be read."""
        if self.unreachable is not None:
            raise FetchError(self.unreachable.code, f"robots.txt: {self.unreachable.detail}")
        if self.parsed is not None and not self.parsed.can_fetch(url, agent):
            raise FetchError(Code.ROBOTS_DISALLOWED, "robots.txt disallows it")

    def ai_sign(self, url: str) -> str:
        """The AI agent that is shut out of this URL by name, or an empty string. Where everyone is shut out, nothing
        is said of AI."""
        if self.parsed is None or not self.parsed.can_fetch(url, "anyone"):
            return ""
        return next((f"robots.txt: {agent}" for agent in AI_AGENTS if not self.parsed.can_fetch(url, agent)), "")

    def crawl_delay_s(self, agent: str) -> float:
        if self.parsed is None:
            return 0.0
        delay = self.parsed.crawl_delay(agent)
        return min(float(delay), MAX_CRAWL_DELAY_S) if delay and delay > 0 else 0.0


class RobotsBook:
    """Rules by origin. `load` returns the file's bytes, or None where the server says that there is none; it raises
    `FetchError` where the server does not answer."""

    def __init__(self, load: Callable[[str], Awaitable[bytes | None]]) -> None:
        self._load = load
        self._book = OriginBook(self._read)

    async def rules(self, url: str) -> Rules:
        return await self._book.of(url)

    async def _read(self, origin: str) -> Rules:
        try:
            body = await self._load(f"{origin}/robots.txt")
        except FetchError as error:
            if error.code in (Code.FETCH_PRIVATE_ADDRESS, Code.FETCH_BAD_URL):
                # the page itself will be refused for this very reason, which is the better thing to report
                return Rules(None)
            return Rules(None, unreachable=error)
        return Rules(parse(body)) if body else Rules(None)

    async def aclose(self) -> None:
        await self._book.aclose()


def parse(body: bytes) -> Any:
    """A protego object of a robots.txt; what cannot be read in it is passed over, as the RFC says."""
    from protego import Protego

    return Protego.parse(body[:MAX_ROBOTS_BYTES].decode("utf-8", errors="replace").lstrip("\ufeff"))

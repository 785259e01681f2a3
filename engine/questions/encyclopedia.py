"""Does an encyclopedia have an entry about a person of this name? Asked through the search seam, a few at a time.

An entry counts only if its title is the name and its first lines speak of one person: a page that lists several
people of a name, a ship, a song or a place that is called like somebody makes nobody public. That the entry is about
this person and not a namesake is not looked into.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from engine.core.protocols import Search, TextHit
from engine.questions.roles import has_role
from engine.questions.text import fold, sentences

SITES = ("wikipedia.org", "britannica.com", "wikidata.org")
#: Hits looked at; an entry whose title is the name is the first or it is none.
HITS = 2
#: How many names are looked up at a time: these services ask for restraint.
AT_ONCE = 2
#: Sentences of an entry that say what it is about.
OPENING = 3
_SEVERAL = re.compile(
    r"\b(?:may|can|could) (?:also )?refer to\b|\bdisambiguation\b|\bis an? (?:[\w-]+ ){0,3}(?:sur|fore)?name\b"
)
_A_LIFE = re.compile(r"\bborn\b|\bdied\b|\((?:[^()]*\b)?(?:1\d|20)\d\d ?(?:-|to )")


class Encyclopedia:
    """Looks names up in what a `Search` finds at the hosts of encyclopedias."""

    def __init__(self, search: Search, *, sites: Sequence[str] = SITES, at_once: int = AT_ONCE) -> None:
        self.search = search
        self.sites = tuple(sites)
        self._places = asyncio.Semaphore(at_once)

    async def knows(self, name: str) -> bool:
        """Whether there is an entry about a person of exactly this name; raises what the search raises."""
        async with self._places:
            hits = await self.search.text(name, limit=HITS)
        return any(is_entry_of(hit, name, sites=self.sites) for hit in hits)


def is_entry_of(hit: TextHit, name: str, *, sites: Sequence[str] = SITES) -> bool:
    """Whether a page is an encyclopedia's entry about one person whose name is its title."""
    host = urlsplit(hit.url).hostname or ""
    if not any(host == site or host.endswith(f".{site}") for site in sites):
        return False
    title = fold(hit.title).removesuffix(" - wikipedia").split(" (")[0].split(" | ")[0]
    if title.strip() != fold(name):
        return False
    opening = fold(" ".join(sentences(hit.text)[:OPENING]))
    if _SEVERAL.search(opening):
        return False
    return _A_LIFE.search(opening) is not None or has_role(opening)

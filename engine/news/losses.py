"""What became of each publisher's links: kept articles, and losses by code. Only counting.

A publisher is the site an item lies on; a source that failed as a whole counts under its own name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.core.schema import Article, Code, Rejected
from engine.web.urls import host_of

#: Losses that say nothing of a publisher: what was left out by the run's own limits or belongs to another week.
OWN_CHOICE = frozenset({Code.LIMIT, Code.OUTSIDE_WINDOW})


@dataclass(frozen=True, slots=True)
class Publisher:
    """Counts of one site: articles and photos kept, pages and photos lost by code (`lost`, `photos_lost`)."""

    name: str
    articles: int = 0
    photos: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    photos_lost: dict[str, int] = field(default_factory=dict)

    @property
    def pages_lost(self) -> int:
        """Pages that were lost for a reason that lies with the publisher or the page."""
        return sum(count for code, count in self.lost.items() if code not in OWN_CHOICE)


def by_publisher(articles: Iterable[Article], rejected: Iterable[Rejected]) -> list[Publisher]:
    """Publishers with most losses first, then by name."""
    kept: Counter[str] = Counter()
    photos: Counter[str] = Counter()
    lost: dict[str, Counter[str]] = {}
    photos_lost: dict[str, Counter[str]] = {}
    for article in articles:
        name = site_of(article.url) or article.source
        kept[name] += 1
        photos[name] += len(article.images)
    for item in rejected:
        name = site_of(item.parent or item.item) or item.source or "?"
        counts = photos_lost if item.parent else lost
        counts.setdefault(name, Counter())[item.code.value] += 1
    found = [
        Publisher(name, kept[name], photos[name], dict(lost.get(name, {})), dict(photos_lost.get(name, {})))
        for name in {*kept, *lost, *photos_lost}
    ]
    return sorted(found, key=lambda one: (-one.pages_lost, -sum(one.photos_lost.values()), one.name))


def site_of(url: str) -> str:
    """Host name without www, empty for what is no address."""
    return host_of(url).removeprefix("www.") if url.startswith(("http://", "https://")) else ""

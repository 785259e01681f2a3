"""Query terms for sources that search: a list, the domains' standing topics, or what people looked for.

`options.query` (text or list) or `options.terms`, a list of term sources: "domains" (standing topics of the six
domains), "trends" (Google Trends' RSS, `options.trends_region`), "wikipedia" (the most read pages of the window's days,
`options.language`), or a plugin of the entry-point group `nest.terms`: an async function of (row, window, deps) that
gives texts. Each term stands in the links it finds.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from importlib.metadata import entry_points

from engine.core.config import SourceSection
from engine.core.errors import ConfigError
from engine.core.schema import Code, Window
from engine.news.deps import NewsDeps
from engine.news.feedread import read_feed
from engine.news.sources.base import SourceError, get

#: Standing topics, chosen for people and products in pictures; ours, not the paper's.
DOMAIN_TOPICS = (
    "central bank governor",
    "chief executive",
    "new factory opening",
    "product launch",
    "smartphone",
    "spacecraft",
    "election candidate",
    "prime minister",
    "film premiere",
    "music award",
    "championship final",
    "olympic champion",
    "court verdict",
    "university award",
)
TRENDS = "https://trends.google.com/trending/rss"
PAGEVIEWS = "https://wikimedia.org/api/rest_v1/metrics/pageviews/top"
GROUP = "nest.terms"
Terms = Callable[..., Awaitable[Sequence[str]]]
TOP_PAGES = 25
_NOT_NEWS = ("Main_Page", "Special:", "Wikipedia:", "Portal:", "File:", "Help:", "Category:", "Template:", "-")


async def terms_of(row: SourceSection, window: Window, *, deps: NewsDeps) -> list[str | None]:
    """Terms of a source in order, each once; [None] where it has none (a topic feed needs none).

    Raises `ConfigError` for an unknown kind and `SourceError` where the only kind cannot be read.
    """
    query = row.options.get("query")
    if query is not None:
        found = [query] if isinstance(query, str) else [str(item) for item in query]
        return list(dict.fromkeys(found))
    kinds = row.options.get("terms", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    terms: list[str | None] = []
    for kind in kinds:
        terms += [term for term in await _source(kind, row)(row, window, deps=deps) if term.strip()]
    return list(dict.fromkeys(terms)) or [None]


def known_kinds() -> tuple[str, ...]:
    """Names of all term sources, the plugins' too."""
    return tuple(sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def _source(kind: str, row: SourceSection) -> Terms:
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    point = next((point for point in entry_points(group=GROUP) if point.name == kind), None)
    if point is None:
        raise ConfigError(f"source '{row.name}': options.terms knows {', '.join(known_kinds())}, not '{kind}'")
    try:
        found: Terms = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the term source '{kind}' cannot be loaded from {point.value}: {error}") from error
    return found


async def _topics(row: SourceSection, window: Window, *, deps: NewsDeps) -> Sequence[str]:
    return DOMAIN_TOPICS


async def _trends(row: SourceSection, window: Window, *, deps: NewsDeps) -> list[str]:
    region = str(row.options.get("trends_region", "US"))
    url = str(row.options.get("trends_url", TRENDS))
    body, headers, final = await get(deps.fetcher, f"{url}?geo={region}")
    feed = read_feed(body, final, headers=headers)
    if feed.problem:
        raise SourceError(Code.SOURCE_NOT_A_FEED, f"trends: {feed.problem}")
    return [entry.title for entry in feed.entries]


async def _most_read(row: SourceSection, window: Window, *, deps: NewsDeps) -> list[str]:
    language = str(row.options.get("language", row.language or "en")).split("-")[0]
    base = str(row.options.get("pageviews_url", PAGEVIEWS))
    found: list[str] = []
    day = window.first
    while day <= window.last:
        body, _, _ = await get(deps.fetcher, f"{base}/{language}.wikipedia/all-access/{day:%Y/%m/%d}", api=True)
        found += read_most_read(body)
        day += timedelta(days=1)
    return list(dict.fromkeys(found))


def read_most_read(body: bytes) -> list[str]:
    """Titles of the pageviews API's answer without the wiki's own pages. Raises `SourceError`."""
    try:
        articles = json.loads(body)["items"][0]["articles"]
        titles = [str(item["article"]) for item in articles]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SourceError(Code.SOURCE_NOT_A_FEED, "the pageviews answer has another shape") from error
    return [title.replace("_", " ") for title in titles if not title.startswith(_NOT_NEWS)][:TOP_PAGES]


_BUILT_IN: dict[str, Terms] = {"domains": _topics, "trends": _trends, "wikipedia": _most_read}

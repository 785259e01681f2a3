"""From sources to links: every source is asked, a bad one stops no other, and one article is fetched once.

Pages are not read here, only what feeds, sitemaps and archives say; a link is dropped only if its own credible date
is clearly not the window's.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from urllib.parse import urlsplit

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError, NestError, TransientError
from engine.core.schema import Code, Link, Rejected, Stage, Window
from engine.news.deps import NewsDeps
from engine.news.sources import SourceError, ready
from engine.web.urls import url_key


async def find(
    window: Window, sources: Sequence[SourceSection], config: CollectSection, *, deps: NewsDeps
) -> list[Link | Rejected]:
    """Links of a window, sorted by address, then everything that was dropped.

    Raises `ConfigError` where no source is configured or a type is unknown, and `TransientError` where not one source
    could be read: an empty week must not be taken for a quiet one.
    """
    active = [row for row in sources if not row.paused]
    if not active:
        raise ConfigError("no [[source]] is configured (or all are paused): 'nest init' writes some to start with")
    types = [ready(row) for row in active]
    results = await asyncio.gather(
        *(_ask(kind.links(window, row, config, deps=deps), row) for kind, row in zip(types, active, strict=True))
    )
    remembered = deps.memory.links(window, [row.name for row in active]) if deps.memory is not None else []
    failed = [result for result in results if isinstance(result, Rejected)]
    if len(failed) == len(active) and not remembered:
        told = "; ".join(f"{item.source}: {item.code.value}, {item.detail}" for item in failed[:3])
        raise TransientError(f"none of the {len(active)} sources could be read ({told}): run again later")
    links: list[Link] = list(remembered)
    dropped: list[Rejected] = []
    for result in results:
        if isinstance(result, Rejected):
            dropped.append(result)
            continue
        for item in result:
            if isinstance(item, Link):
                links.append(item)
            else:
                dropped.append(item)
    kept, doubles = merge_links(links)
    if config.limit is not None:
        kept, beyond = sample(kept, config.limit)
        dropped += [
            Rejected(item=link.url, stage=Stage.COLLECT, code=Code.LIMIT, detail="[collect] limit", source=link.source)
            for link in beyond
        ]
    lost = sorted([*dropped, *doubles], key=lambda item: (item.item, item.source, item.code.value, item.detail))
    return [*kept, *lost]


def sample(links: Sequence[Link], limit: int) -> tuple[list[Link], list[Link]]:
    """At most `limit` links for a pilot, and the rest, both in the order given.

    Hosts take turns, since a role counts that two publishers state; a host's links come by the digest of their
    address, since addresses often begin with the date and the first of them would all be of one day.
    """
    turns: dict[str, list[tuple[str, int]]] = {}
    for place, link in enumerate(links):
        told = hashlib.sha256(url_key(link.url).encode()).hexdigest()
        turns.setdefault(urlsplit(link.url).hostname or "", []).append((told, place))
    order = sorted((turn, host, place) for host, own in turns.items() for turn, (_, place) in enumerate(sorted(own)))
    chosen = {place for _, _, place in order[:limit]}
    return (
        [link for place, link in enumerate(links) if place in chosen],
        [link for place, link in enumerate(links) if place not in chosen],
    )


async def _ask(work: object, row: SourceSection) -> list[Link | Rejected] | Rejected:
    try:
        found: list[Link | Rejected] = await work  # type: ignore[misc]
    except SourceError as error:
        return Rejected(
            item=row.url or row.name, stage=Stage.COLLECT, code=error.code, detail=error.detail, source=row.name
        )
    except NestError:
        raise
    except Exception as error:  # noqa: BLE001 - a fault in one source, perhaps a plugin's, must not end the others
        return Rejected(
            item=row.url or row.name,
            stage=Stage.COLLECT,
            code=Code.INTERNAL,
            detail=f"{type(error).__name__}: {error}"[:300],
            source=row.name,
        )
    return found


def merge_links(links: Sequence[Link]) -> tuple[list[Link], list[Rejected]]:
    """One link per article: the others' witnesses, pictures and first sight are added to the one that is kept.

    A source's own link (feed, sitemap) is kept before an aggregator's; then the first by source and address.
    """
    rank = {"feed": 0, "sitemap": 1, "archive": 2}
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(url_key(link.url), []).append(link)
    kept: list[Link] = []
    dropped: list[Rejected] = []
    for group in groups.values():
        if len(group) == 1 and len(group[0].witnesses) <= 1:
            # most links are met once: nothing to add, and a copy of each would be half of what finding takes
            kept.append(group[0])
            continue
        ordered = sorted(
            group, key=lambda link: (rank.get(link.source_type, 5), bool(link.term), link.source, link.url, link.line())
        )
        first, rest = ordered[0], ordered[1:]
        seen = [link.first_seen for link in ordered if link.first_seen is not None]
        kept.append(
            first.model_copy(
                update={
                    "witnesses": tuple(dict.fromkeys(w for link in ordered for w in link.witnesses)),
                    "images": first.images or next((link.images for link in rest if link.images), ()),
                    "first_seen": min(seen) if seen else None,
                    "publisher": first.publisher or next((link.publisher for link in rest if link.publisher), ""),
                    "section": first.section or next((link.section for link in rest if link.section), ""),
                    "term": first.term or next((link.term for link in rest if link.term), None),
                }
            )
        )
        known = {(first.source, first.url)}
        for link in rest:
            # the same link met again (harvested, then in the feed) is no loss
            if (link.source, link.url) in known:
                continue
            known.add((link.source, link.url))
            dropped.append(
                Rejected(
                    item=link.url,
                    stage=Stage.COLLECT,
                    code=Code.DUPLICATE_URL,
                    detail=f"the same address as {first.url} of {first.source}",
                    source=link.source,
                )
            )
    return sorted(kept, key=lambda link: (url_key(link.url), link.url)), dropped

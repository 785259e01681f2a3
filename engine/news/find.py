"""From sources to links: every source is asked, a bad one stops no other, and one article is fetched once.

Pages are not read here, only what feeds, sitemaps and archives say; a link is dropped only if its own credible date
is clearly not the window's.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError, NestError, TransientError
from engine.core.schema import Code, Link, Rejected, Stage, Window
from engine.news.deps import NewsDeps
from engine.news.sources import SourceError, ready
from engine.web.urls import url_key


@dataclass(frozen=True, slots=True)
class Found:
    """What finding gave: `lines` are links as JSON, a fifth of the records' size, and sorted by address; `lost` is what
    was dropped."""

    lines: list[bytes]
    lost: list[Rejected]

    def links(self) -> Iterator[Link]:
        return map(_unpacked, self.lines)


async def find(
    window: Window, sources: Sequence[SourceSection], config: CollectSection, *, deps: NewsDeps
) -> list[Link | Rejected]:
    """Links of a window, sorted by address, then everything that was dropped: `gather` for few links."""
    found = await gather(window, sources, config, deps=deps)
    return [*found.links(), *found.lost]


async def gather(window: Window, sources: Sequence[SourceSection], config: CollectSection, *, deps: NewsDeps) -> Found:
    """Links of a window and what was dropped. A source's records are held while it is read, then only their lines.

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
    groups = _Groups()
    for link in remembered:
        groups.add(url_key(link.url), _packed(link), alone=len(link.witnesses) <= 1)
    dropped = list(failed)
    for result in results:
        if isinstance(result, _Told):
            dropped += result.lost
            for key, line, alone in result.links:
                groups.add(key, line, alone=alone)
    del results
    lines, doubles = groups.merged()
    if config.limit is not None:
        kept, beyond = sample([_unpacked(line) for line in lines], config.limit)
        lines = [_packed(link) for link in kept]
        dropped += [
            Rejected(item=link.url, stage=Stage.COLLECT, code=Code.LIMIT, detail="[collect] limit", source=link.source)
            for link in beyond
        ]
    lost = sorted([*dropped, *doubles], key=lambda item: (item.item, item.source, item.code.value, item.detail))
    return Found(lines, lost)


def _packed(link: Link) -> bytes:
    return link.line().encode()


def _unpacked(line: bytes) -> Link:
    return Link.read(json.loads(line))


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


@dataclass(frozen=True, slots=True)
class _Told:
    """What one source told: of each link its key, its line, and whether one witness at most speaks of it."""

    links: list[tuple[str, bytes, bool]]
    lost: list[Rejected]


async def _ask(work: object, row: SourceSection) -> _Told | Rejected:
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
    links = [(url_key(item.url), _packed(item), len(item.witnesses) <= 1) for item in found if isinstance(item, Link)]
    return _Told(links, [item for item in found if isinstance(item, Rejected)])


def merge_links(links: Iterable[Link]) -> tuple[list[Link], list[Rejected]]:
    """One link per article, sorted by address, and what was dropped for it."""
    groups = _Groups()
    for link in links:
        groups.add(url_key(link.url), _packed(link), alone=len(link.witnesses) <= 1)
    lines, dropped = groups.merged()
    return [_unpacked(line) for line in lines], dropped


class _Groups:
    """Links by the article they lead to. Most are met once: they stay lines and are never read again here."""

    def __init__(self) -> None:
        self._alone: dict[str, bytes] = {}
        self._several: dict[str, list[bytes]] = {}

    def add(self, key: str, line: bytes, *, alone: bool) -> None:
        """One more link. `alone` says that nothing has to be put together if it stays the only one."""
        if key in self._several:
            self._several[key].append(line)
        elif key in self._alone:
            self._several[key] = [self._alone.pop(key), line]
        elif alone:
            self._alone[key] = line
        else:
            self._several[key] = [line]

    def merged(self) -> tuple[list[bytes], list[Rejected]]:
        """Lines sorted by the articles' keys, and what was dropped."""
        dropped: list[Rejected] = []
        lines = []
        for key in sorted([*self._alone, *self._several]):
            line = self._alone.get(key)
            if line is None:
                link, others = _merge([_unpacked(told) for told in self._several[key]])
                line = _packed(link)
                dropped += others
            lines.append(line)
        return lines, dropped


def _merge(group: Sequence[Link]) -> tuple[Link, list[Rejected]]:
    """One link of several to one article: the others' witnesses, pictures and first sight are added to the one that is
    kept. A source's own link (feed, sitemap) is kept before an aggregator's; then the first by source and address."""
    rank = {"feed": 0, "sitemap": 1, "archive": 2}
    ordered = sorted(
        group, key=lambda link: (rank.get(link.source_type, 5), bool(link.term), link.source, link.url, link.line())
    )
    first, rest = ordered[0], ordered[1:]
    seen = [link.first_seen for link in ordered if link.first_seen is not None]
    kept = first.model_copy(
        update={
            "witnesses": tuple(dict.fromkeys(w for link in ordered for w in link.witnesses)),
            "images": first.images or next((link.images for link in rest if link.images), ()),
            "first_seen": min(seen) if seen else None,
            "publisher": first.publisher or next((link.publisher for link in rest if link.publisher), ""),
            "section": first.section or next((link.section for link in rest if link.section), ""),
            "term": first.term or next((link.term for link in rest if link.term), None),
        }
    )
    dropped = []
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
    return kept, dropped

"""`type = "feed"`: RSS 0.9x/1.0/2.0, Atom, media RSS. Options: none."""

from __future__ import annotations

from engine.core.config import CollectSection, SourceSection
from engine.core.schema import Code, Link, Rejected, Window
from engine.news.deps import NewsDeps
from engine.news.feedread import read_feed
from engine.news.sources.base import SourceError, drop, get, latest_of, outside


class FeedSource:
    """Links of a publisher's own feed."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]:
        body, headers, url = await get(deps.fetcher, row.url)
        feed = read_feed(body, url, headers=headers, latest=latest_of(window))
        if feed.problem:
            raise SourceError(Code.SOURCE_NOT_A_FEED, feed.problem)
        found: list[Link | Rejected] = []
        for entry in feed.entries:
            witnesses = entry.witnesses
            if not row.credible_feed_date:
                witnesses = tuple(
                    w.model_copy(update={"credible": False, "note": "the source's dates do not count"})
                    for w in witnesses
                )
            if why := outside(witnesses, window):
                found.append(drop(entry.url, row, Code.OUTSIDE_WINDOW, why))
                continue
            found.append(
                Link(
                    url=entry.url,
                    source=row.name,
                    source_type="feed",
                    publisher=row.publisher or entry.publisher or feed.title,
                    title=entry.title,
                    summary=entry.summary,
                    section=row.section or next(iter(entry.tags), ""),
                    witnesses=witnesses,
                    images=entry.images,
                )
            )
        return found

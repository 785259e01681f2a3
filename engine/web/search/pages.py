"""From what a search service claims to what a page says: fetch, read, check the date, keep or drop.

A claimed result is only a pointer. Its text comes from the page itself, through the guarded client, and its date is the
later one of the service's and the page's: either may be wrong, and the later one can leak nothing. A result that cannot
be fetched or opened is left out; the next one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.core.images import ImageError, open_image
from engine.core.protocols import Fetcher, ImageHit, TextHit
from engine.core.schema import Article
from engine.web.errors import FetchError
from engine.web.search.guard import Blocked, in_time, last_instant

#: Claims looked at per wanted hit: some fail, some are too late.
_MARGIN = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """A result as the service gives it. `published` is the latest instant it may come from; `snippet` is its own text,
    used only where pages are not read."""

    url: str
    title: str = ""
    snippet: str = ""
    published: datetime | None = None
    image_url: str = ""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """What a page says: `published` is the latest instant its text may come from."""

    url: str
    title: str
    text: str
    published: datetime | None = None


#: Body and URL to what the page says, None if it says nothing readable. The collect stage's extraction is one.
PageReader = Callable[[bytes, str], ReadPage | None]


def page_of_article(article: Article) -> ReadPage | None:
    """An extracted article as a read page, so that any extraction that makes articles is a `PageReader`."""
    if not article.text:
        return None
    modified = [w.value for w in article.date_witnesses if w.role == "modified" and w.credible]
    last = last_instant(article.published_at, precision=article.date_precision, modified=modified)
    return ReadPage(url=article.canonical_url, title=article.title, text=article.text, published=last)


async def text_hits(
    claims: Sequence[Claim],
    *,
    fetcher: Fetcher,
    read: PageReader,
    limit: int,
    until: datetime | None,
    blocked: Sequence[str],
) -> list[TextHit]:
    """The first `limit` claims whose pages can be read and may be known, in the service's order."""
    guard = Blocked(blocked)
    hits: list[TextHit] = []
    for claim in claims[: limit * _MARGIN]:
        # what the service itself dates too late, or what is blocked, is not even fetched
        if claim.url in guard or (claim.published is not None and not in_time(claim.published, until)):
            continue
        try:
            fetched = await fetcher.fetch(claim.url, kind="page")
        except FetchError:
            continue
        page = read(fetched.body, fetched.url)
        if page is None or fetched.url in guard or page.url in guard:
            continue
        known = [instant for instant in (claim.published, page.published) if instant is not None]
        last = max(known) if known else None
        if not in_time(last, until):
            continue
        hits.append(
            TextHit(url=claim.url, title=page.title or claim.title, text=page.text, published=last, score=-len(hits))
        )
        if len(hits) == limit:
            break
    return hits


async def image_hits(
    claims: Sequence[Claim], *, fetcher: Fetcher, limit: int, until: datetime | None, blocked: Sequence[str]
) -> list[ImageHit]:
    """The first `limit` claimed images that open and may be known, in the service's order; dates are the service's."""
    guard = Blocked(blocked)
    hits: list[ImageHit] = []
    for claim in claims[: limit * _MARGIN]:
        if claim.url in guard or claim.image_url in guard or not in_time(claim.published, until):
            continue
        try:
            fetched = await fetcher.fetch(claim.image_url, kind="image")
            pixels = open_image(fetched.body).pixels
        except (FetchError, ImageError):
            continue
        hits.append(
            ImageHit(
                url=claim.image_url,
                caption=claim.title or claim.snippet,
                image=pixels,
                published=claim.published,
                score=-len(hits),
            )
        )
        if len(hits) == limit:
            break
    return hits

"""The collect stage: links become articles with text, certain dates and photos, or `Rejected` with a code.

`run` works on a shard of links and waits for the network through `deps.fetcher`; `reduce` sees the whole window and
finds what is there twice. Deciding about pages and photos is done in the modules beside this one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.core.config import CollectSection
from engine.core.errors import TransientError
from engine.core.images import ImageError
from engine.core.protocols import Fetched
from engine.core.schema import Article, Code, DateWitness, ImageClaim, ImageRef, Link, Rejected, Stage, Window
from engine.news.decide import place
from engine.news.deps import NewsDeps
from engine.news.domains import domain_of
from engine.news.duplicates import reduce
from engine.news.extract import Page, article_of, extract_page
from engine.news.page.pictures import fold_key
from engine.news.photogroups import Hashes, hashes_of, is_near
from engine.news.photos import near, read_photo
from engine.news.readers import ReaderDied, Readers
from engine.news.sources.base import latest_of
from engine.web.errors import FetchError
from engine.web.optout import REMARK_HEADER
from engine.web.urls import host_of

__all__ = ["VERSION", "reduce", "run"]

#: Changes when the same pages would give other articles; part of the stage's key.
VERSION = "5"
_UNREACHED = frozenset({Code.FETCH_FAILED, Code.FETCH_TIMEOUT})
#: Pictures that are fetched for one that is kept, at most; the rest of a long gallery is left alone.
TRIES_PER_PHOTO = 3


@dataclass(frozen=True, slots=True)
class _Context:
    config: CollectSection
    window: Window
    deps: NewsDeps
    latest: datetime
    readers: Readers
    known: Hashes


async def run(
    shard: Sequence[Link], config: CollectSection, *, window: Window, deps: NewsDeps
) -> list[Article | Rejected]:
    """Articles of a shard of links in the shard's order, each followed by what was refused of it.

    An image that is refused is a `Rejected` with the article's URL as parent; an article left without one is
    `NO_IMAGE`. Raises `TransientError` where the network as a whole seems to be gone.
    """
    context = _Context(config, window, deps, latest_of(window), deps.readers or Readers(), hashes_of(deps.known_photos))
    results = await asyncio.gather(*(_one(link, context) for link in shard))
    _require_network(shard, results)
    return [item for result in results for item in result]


def _require_network(shard: Sequence[Link], results: Sequence[Sequence[Article | Rejected]]) -> None:
    hosts = {host_of(link.url) for link in shard}
    if len(hosts) >= 3 and all(
        isinstance(item, Rejected) and item.code in _UNREACHED for result in results for item in result
    ):
        raise TransientError(f"none of {len(hosts)} hosts could be reached: look at the network and run again")


async def _one(link: Link, context: _Context) -> list[Article | Rejected]:
    def lost(code: Code, detail: str) -> Rejected:
        return Rejected(item=link.url, stage=Stage.COLLECT, code=code, detail=detail[:500], source=link.source)

    try:
        fetched = await _page(link, context)
    except FetchError as error:
        return [lost(error.code, error.detail)]
    others = list(link.witnesses)
    if link.first_seen is not None:
        others.append(DateWitness(kind="first_seen", value=link.first_seen, raw=link.first_seen.isoformat()))
    try:
        page = await context.readers.call(
            extract_page, fetched.body, fetched.url, headers=dict(fetched.headers), latest=context.latest, others=others
        )
    except ReaderDied as error:
        return [lost(Code.NO_TEXT, str(error))]
    problem = _refuse(page, context)
    if problem is not None:
        return [lost(*problem)]
    images, refused = await _photos(page, link, context)
    if not images:
        return [lost(Code.NO_IMAGE, f"no usable picture of {len(refused)}"), *refused]
    return [_article(page, link, fetched, images, context), *refused]


async def _page(link: Link, context: _Context) -> Fetched:
    if not link.html_sha256:
        return await context.deps.fetcher.fetch(link.url, kind="page")
    body = await asyncio.to_thread(context.deps.blobs.get, link.html_sha256, "html")
    headers = {"content-type": link.content_type} if link.content_type else {}
    return Fetched(link.url, 200, headers, body, from_cache=True)


def _refuse(page: Page, context: _Context) -> tuple[Code, str] | None:
    """The first reason why a page gives no article of this window."""
    config = context.config
    if page.opt_out and config.obey_ai_opt_out:
        return Code.AI_OPT_OUT, page.opt_out
    if page.problem is not None and page.problem[0] in (Code.SECTION_FRONT, Code.LIVE_BLOG, Code.CONSENT_PAGE):
        return page.problem
    misplaced = place(page.decision, context.window)
    if misplaced is not None and misplaced[0] is Code.OUTSIDE_WINDOW:
        return misplaced
    if page.problem is not None:
        return page.problem
    if len(page.text) < config.min_text_chars:
        return Code.NO_TEXT, f"{len(page.text)} characters of text, the least is {config.min_text_chars}"
    if not page.title:
        return Code.NO_TITLE, "no headline"
    return misplaced


async def _photos(page: Page, link: Link, context: _Context) -> tuple[tuple[ImageRef, ...], list[Rejected]]:
    """Fetch pictures in the page's order until enough are kept."""
    config = context.config
    kept: list[ImageRef] = []
    refused: list[Rejected] = []

    def lost(claim: ImageClaim, code: Code, detail: str) -> None:
        refused.append(
            Rejected(
                item=claim.url,
                stage=Stage.COLLECT,
                code=code,
                detail=detail[:500],
                parent=page.canonical_url,
                source=link.source,
            )
        )

    claims = _claims(page, link)
    for tried, claim in enumerate(claims):
        if len(kept) >= config.max_images_per_article or tried >= config.max_images_per_article * TRIES_PER_PHOTO:
            lost(claim, Code.LIMIT, f"{len(kept)} pictures are kept of one article")
            continue
        if config.require_caption and not _is_told(claim):
            lost(claim, Code.NO_CAPTION, "nothing is said of the picture")
            continue
        try:
            fetched = await context.deps.fetcher.fetch(claim.url, kind="image")
            photo = await context.readers.call(read_photo, fetched.body, claim, min_side_px=config.min_image_side_px)
            await asyncio.to_thread(context.deps.blobs.put, fetched.body, photo.ext)
        except (FetchError, ImageError) as error:
            lost(claim, error.code, error.detail)
            continue
        except ReaderDied as error:
            lost(claim, Code.IMAGE_NOT_AN_IMAGE, str(error))
            continue
        twin = next(
            (other for other in kept if near(photo.phash, [other.phash], bits=config.near_duplicate_bits)), None
        )
        if twin is not None:
            lost(claim, Code.IMAGE_DUPLICATE, f"the same photo as {twin.url}")
            continue
        if is_near(photo.phash, context.known, bits=config.near_duplicate_bits):
            photo = photo.model_copy(update={"archive_material": True})
        kept.append(photo)
    return tuple(kept), refused


def _claims(page: Page, link: Link) -> list[ImageClaim]:
    """The page's pictures; those of the feed where the page has none, and their words where the page is silent."""
    told = {fold_key(claim.url): claim for claim in link.images}
    if not page.images:
        return list(link.images)
    found = []
    for claim in page.images:
        other = told.get(fold_key(claim.url))
        if other is not None and not claim.caption:
            claim = claim.model_copy(update={"caption": other.caption, "credit": claim.credit or other.credit})
        found.append(claim)
    return found


def _is_told(claim: ImageClaim) -> bool:
    return bool(claim.caption) or len(claim.alt.split()) >= 2


def _article(page: Page, link: Link, fetched: Fetched, images: tuple[ImageRef, ...], context: _Context) -> Article:
    article = article_of(page, html_sha256=hashlib.sha256(fetched.body).hexdigest())
    context.deps.blobs.put(fetched.body, "html")
    section = link.section or article.section
    notes = list(article.notes)
    if remark := fetched.headers.get(REMARK_HEADER):
        notes.append(f"ai_opt_out: {remark}")
    return article.model_copy(
        update={
            "url": link.url,
            "publisher": link.publisher or article.publisher,
            "source": link.source,
            "source_type": link.source_type,
            "section": section,
            "domain": domain_of(section=section, url=fetched.url, title=page.title, text=page.text),
            "term": link.term,
            "images": images,
            "notes": tuple(notes),
        }
    )

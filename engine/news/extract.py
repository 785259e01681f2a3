"""Reading one page: bytes and address in, everything the engine knows of it out. Pure: no connection, no clock.

The parts lie in `page/`; the parsed tree is shared by all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.core.schema import Article, Code, DateWitness, ImageClaim
from engine.news.decide import Decision, decide
from engine.news.domains import domain_of
from engine.news.page.images import page_images
from engine.news.page.jsonld import read_jsonld
from engine.news.page.kinds import kind_problem
from engine.news.page.markup import decode, tree_of
from engine.news.page.metadata import (
    authors_of,
    canonical_of,
    language_of,
    metas_of,
    publisher_of,
    section_of,
    title_of,
)
from engine.news.page.standfirst import standfirst
from engine.news.page.text import body_text
from engine.news.page.witnesses import page_witnesses
from engine.web.optout import meta_sign
from engine.web.urls import url_key


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. `witnesses` are the page's own; `problem` is the code and reason why it is no article."""

    url: str
    canonical_url: str = ""
    title: str = ""
    text: str = ""
    language: str = ""
    authors: tuple[str, ...] = ()
    publisher: str = ""
    section: str = ""
    decision: Decision = field(default_factory=lambda: Decision(None))
    witnesses: tuple[DateWitness, ...] = ()
    images: tuple[ImageClaim, ...] = ()
    problem: tuple[Code, str] | None = None
    opt_out: str = ""


def extract_page(
    body: bytes,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    latest: datetime | None = None,
    others: Sequence[DateWitness] = (),
) -> Page:
    """Read a page. `headers` have lower-case names. `latest` is the first instant that cannot be a publication date
    (later ones are refused); `others` are witnesses from outside the page (feed, sitemap, first seen), which the
    decision weighs too."""
    tree = tree_of(decode(body, (headers or {}).get("content-type", "")))
    if tree is None:
        return Page(url=url, canonical_url=url, problem=(Code.NO_TEXT, "the page cannot be parsed"))
    metas = metas_of(tree)
    data = read_jsonld(tree, url, metas.get("og:title", ""))
    language = language_of(tree, metas, data)
    publisher = publisher_of(metas, data, url)
    witnesses = (
        *page_witnesses(tree, url, metas=metas, data=data, language=language, latest=latest),
        *(w for w in others if latest is None or w.value < latest),
    )
    text = body_text(tree, url)
    summary = standfirst(tree, text, metas=metas, data=data)
    return Page(
        url=url,
        canonical_url=canonical_of(tree, metas, url),
        title=title_of(tree, metas, data, publisher),
        text=f"{summary}\n{text}" if summary else text,
        language=language,
        authors=authors_of(tree, metas, data),
        publisher=publisher,
        section=section_of(metas, data),
        decision=decide(witnesses),
        witnesses=witnesses,
        images=page_images(tree, url, metas=metas, data=data),
        problem=kind_problem(tree, url, text, metas=metas, data=data),
        opt_out=meta_sign(metas),
    )


def pictures_of(body: bytes, url: str, *, headers: Mapping[str, str] | None = None) -> tuple[ImageClaim, ...]:
    """Only the pictures of a page, lead first marked: far quicker than reading it."""
    tree = tree_of(decode(body, (headers or {}).get("content-type", "")))
    if tree is None:
        return ()
    metas = metas_of(tree)
    return page_images(tree, url, metas=metas, data=read_jsonld(tree, url, metas.get("og:title", "")))


def article_id(canonical_url: str) -> str:
    """16 hex digits of the address's key: the same for all spellings of one address."""
    return hashlib.sha256(url_key(canonical_url).encode()).hexdigest()[:16]


def read_article(
    body: bytes, url: str, *, headers: Mapping[str, str] | None = None, latest: datetime | None = None
) -> tuple[Article, tuple[ImageClaim, ...]]:
    """A lone page as an `Article` without fetched images, and the images it points to (for `nest extract`)."""
    page = extract_page(body, url, headers=headers, latest=latest)
    return article_of(page, html_sha256=hashlib.sha256(body).hexdigest()), page.images


def article_of(page: Page, *, html_sha256: str = "") -> Article:
    """The record of a page; source, images and story are filled in by the collect stage."""
    notes = [f"{page.problem[0].value}: {page.problem[1]}"] if page.problem else []
    if page.decision.problem is not None:
        notes.append(f"{page.decision.problem.value}: {page.decision.detail}")
    if page.opt_out:
        notes.append(f"ai_opt_out: {page.opt_out}")
    return Article(
        id=article_id(page.canonical_url or page.url),
        url=page.url,
        canonical_url=page.canonical_url or page.url,
        title=page.title,
        text=page.text,
        language=page.language,
        authors=page.authors,
        publisher=page.publisher,
        section=page.section,
        domain=domain_of(section=page.section, url=page.url, title=page.title, text=page.text),
        published_at=page.decision.published_at,
        date_certain=page.decision.certain,
        date_precision=page.decision.precision,
        date_witnesses=page.witnesses,
        html_sha256=html_sha256,
        notes=tuple(notes),
    )

"""Title, authors, language, canonical address, section and publisher of a page.

newspaper3k's extractors are asked where structured data says nothing; of newspaper only these are used, never its
downloader or full parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.news.page.jsonld import Structured, strings
from engine.news.page.markup import excerpt, text_of
from engine.web.urls import host_of, join

_SEPARATOR = re.compile(r"\s+[|\u2013\u2014\u00b7\u2022»:\-]\s+")
#: Among elements with these words in these attributes newspaper looks for authors.
_BYLINES = ("name", "rel", "itemprop", "class", "id"), ("author", "byl", "dc.creator")
_TAIL = re.compile(r"^\s+[|\u2013\u2014\u00b7\u2022»\-]\s+\S")


def metas_of(tree: Any) -> dict[str, str]:
    """Meta tags by lower-case name, property or itemprop; the first one of a name counts."""
    found: dict[str, str] = {}
    for tag in tree.iter("meta"):
        content = (tag.get("content") or "").strip()
        if not content:
            continue
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            name = (tag.get(attribute) or "").strip().lower()
            if name:
                found.setdefault(name, " ".join(content.split()))
    return found


def title_of(tree: Any, metas: Mapping[str, str], data: Structured, publisher: str) -> str:
    """The headline: og:title, structured data, the title tag, the h1; a publisher's name at its end is cut."""
    headline = next(iter(strings(data.article.get("headline"))), "")
    heads = [text for node in tree.iter("h1") if (text := text_of(node))]
    tag = next((text_of(node) for node in tree.xpath("//head/title | //title")), "")
    for candidate in (metas.get("og:title", ""), headline, metas.get("twitter:title", ""), tag, *heads[:1]):
        title = _without_publisher(" ".join(candidate.split()), publisher)
        if title:
            # a heading with which the candidate begins, before a separator, is the headline without the site's name
            return next((head for head in heads if _TAIL.match(title.removeprefix(head)) and head in title), title)
    return ""


def _without_publisher(title: str, publisher: str) -> str:
    parts = _SEPARATOR.split(title)
    if len(parts) < 2 or not publisher:
        return title
    tail = parts[-1]
    if re.sub(r"\W", "", tail).lower() == re.sub(r"\W", "", publisher).lower():
        return title[: title.rindex(tail)].rstrip(" |\u2013\u2014\u00b7\u2022»:-")
    return title


def publisher_of(metas: Mapping[str, str], data: Structured, url: str) -> str:
    """og:site_name, the publisher of the structured data, or the host."""
    named = metas.get("og:site_name") or next(iter(strings(data.article.get("publisher"), "name")), "")
    return named or host_of(url).removeprefix("www.")


def language_of(tree: Any, metas: Mapping[str, str], data: Structured) -> str:
    """BCP 47 language as the page says it, lower-case language and upper-case region; empty if it does not."""
    raw = (
        next(iter(strings(data.article.get("inLanguage"), "name", "alternateName")), "")
        or tree.get("lang", "")
        or tree.get("{http://www.w3.org/XML/1998/namespace}lang", "")
        or metas.get("content-language", "")
        or metas.get("og:locale", "")
    )
    match = re.match(r"^\s*([A-Za-z]{2,3})(?:[-_]([A-Za-z]{2}))?(?![A-Za-z])", raw)
    if match is None:
        return ""
    return match[1].lower() + (f"-{match[2].upper()}" if match[2] else "")


def canonical_of(tree: Any, metas: Mapping[str, str], url: str) -> str:
    """rel=canonical or og:url if it lies on the same site and names a page, else the URL itself.

    A canonical link to the front page or to another site's syndicated original is no address of this page.
    """
    link = next(
        (node.get("href") for node in tree.iter("link") if "canonical" in (node.get("rel") or "").lower().split()), None
    )
    for candidate in (link, metas.get("og:url")):
        found = join(url, candidate) if candidate else ""
        if not found:
            continue
        path = re.sub(r"^https?://[^/]+", "", found).strip("/")
        if path and _site(host_of(found)) == _site(host_of(url)):
            return found.split("#", 1)[0]
    return url


def _site(host: str) -> str:
    return ".".join(host.split(".")[-2:])


def authors_of(tree: Any, metas: Mapping[str, str], data: Structured) -> tuple[str, ...]:
    """Names of the authors, from structured data, meta tags, or newspaper's byline rules."""
    names = strings(data.article.get("author"), "name")
    if not names:
        names = [
            part
            for key in ("author", "article:author", "parsely-author", "dc.creator", "byl", "sailthru.author")
            for part in re.split(r"\s*(?:,|;|\band\b|\bund\b|\bet\b)\s*", metas.get(key, ""))
        ]
    if not any(_is_name(name) for name in names):
        names = _newspaper_authors(tree)
    kept = [re.sub(r"(?i)^(by|von|par|por)\s+", "", " ".join(name.split())) for name in names if _is_name(name)]
    return tuple(dict.fromkeys(kept))[:8]


def _is_name(text: str) -> bool:
    stripped = text.strip()
    return 2 < len(stripped) < 60 and not stripped.startswith(("http", "@", "/")) and len(stripped.split()) <= 6


def _newspaper_authors(tree: Any) -> list[str]:
    found: list[str] = newspaper_extractor().get_authors(excerpt(tree, *_BYLINES))
    return found


def newspaper_extractor() -> Any:
    """newspaper3k's metadata extractor over an lxml tree; it opens no connection."""
    from newspaper.configuration import Configuration
    from newspaper.extractors import ContentExtractor

    return ContentExtractor(Configuration())


def section_of(metas: Mapping[str, str], data: Structured) -> str:
    """The section as the page names it, e.g. "Business"; empty if it does not."""
    return (
        next(iter(strings(data.article.get("articleSection"))), "")
        or metas.get("article:section", "")
        or metas.get("parsely-section", "")
        or metas.get("section", "")
    )

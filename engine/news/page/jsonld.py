"""JSON-LD of a page: the node of the article itself, also from blocks that are not quite JSON."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.web.urls import url_key

_ARTICLE = re.compile(r"(Article|BlogPosting|Report)$")
_NEVER = frozenset({"ItemList", "BreadcrumbList", "Comment", "Review", "Product", "Event", "Organization", "Person"})
_LOOSE = re.compile(
    r'"(@type|datePublished|dateModified|dateCreated|headline|inLanguage|articleSection)"\s*:\s*"((?:[^"\\]|\\.)*)"'
)


@dataclass(frozen=True, slots=True)
class Structured:
    """`article` is the node of this page's article (empty if none), `page` a WebPage node, `types` all types met.
    `loose` tells that a block was no JSON and was read by pattern."""

    article: Mapping[str, Any]
    page: Mapping[str, Any]
    types: frozenset[str]
    loose: bool = False


def read_jsonld(tree: Any, url: str, title: str) -> Structured:
    """Find the article node: by type, then by its address or headline where there are several."""
    nodes: list[Mapping[str, Any]] = []
    loose = False
    for script in tree.xpath("//script[contains(translate(@type,'LDJSON','ldjson'),'ld+json')]"):
        raw = (script.text or "").strip()
        found, was_loose = _load(raw)
        loose = loose or was_loose
        nodes += list(_flat(found))
    articles = [node for node in nodes if any(_ARTICLE.search(name) for name in types_of(node))]
    pages = [node for node in nodes if any(name.endswith("Page") for name in types_of(node))]
    return Structured(
        article=_own(articles, url, title),
        page=pages[0] if pages else {},
        types=frozenset(name for node in nodes for name in types_of(node)),
        loose=loose,
    )


def types_of(node: Mapping[str, Any]) -> tuple[str, ...]:
    found = node.get("@type", ())
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return tuple(str(name).rsplit("/", 1)[-1] for name in names)


def strings(value: object, *keys: str) -> list[str]:
    """All texts in a JSON-LD value: itself, or the given keys of objects in it, or of a list of such."""
    if isinstance(value, str):
        return [html.unescape(value).strip()] if value.strip() else []
    if isinstance(value, Mapping):
        return [text for key in keys for text in strings(value.get(key), *keys)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item, *keys)]
    return []


def _own(articles: list[Mapping[str, Any]], url: str, title: str) -> Mapping[str, Any]:
    if len(articles) < 2:
        return articles[0] if articles else {}
    key = url_key(url)
    for node in articles:
        places = (
            strings(node.get("url")) + strings(node.get("mainEntityOfPage"), "@id", "url") + strings(node.get("@id"))
        )
        if any(url_key(place) == key for place in places):
            return node
    wanted = _words(title)
    for node in articles:
        headline = _words(" ".join(strings(node.get("headline"))[:1]))
        if wanted and headline and len(wanted & headline) * 2 > len(headline):
            return node
    return articles[0]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _load(raw: str) -> tuple[object, bool]:
    text = (
        re.sub(r"^\s*(<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(-->|//\s*\]\]>|\]\]>)\s*;?\s*$", "", raw).strip().rstrip(";")
    )
    for candidate in (text, re.sub(r",\s*([}\]])", r"\1", text), html.unescape(text)):
        try:
            return json.loads(candidate, strict=False), False
        except (ValueError, RecursionError):
            continue
    node: dict[str, Any] = {}
    for name, value in _LOOSE.findall(text):
        # types of nested nodes would hide the article's own, which is what the block is read for
        if name == "@type" and _ARTICLE.search(str(node.get("@type", ""))):
            continue
        if name == "@type" or name not in node:
            node[name] = value
    return node, bool(node)


def _flat(value: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if depth > 6:
        return
    if isinstance(value, list):
        for item in value:
            yield from _flat(item, depth + 1)
    elif isinstance(value, Mapping):
        names = types_of(value)
        if names:
            yield value
        if names and all(name in _NEVER for name in names):
            return
        for key in ("@graph", "mainEntity", "mainEntityOfPage", "hasPart"):
            inner = value.get(key)
            if isinstance(inner, list | Mapping) and not (key == "hasPart" and names):
                yield from _flat(inner, depth + 1)

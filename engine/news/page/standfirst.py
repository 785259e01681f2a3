"""The summary paragraph between headline and story, which sites keep outside the element that holds the text.

Reporters put the news into it, and the story goes on from there; extractors that look for the densest block lose it.
It is known by its class or by being what the page says of itself (its description), whatever the language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.news.page.area import heading_of
from engine.news.page.captions import credit_of
from engine.news.page.jsonld import Structured, strings
from engine.news.page.markup import squeezed, text_of

#: A shorter line under the headline is a second headline, a byline or a label: it has no news that the story lacks.
LEAST_CHARS = 120
MOST_CHARS = 1000
#: Elements looked at after the headline; where the story has not begun by then, it is not there.
REACH = 300
#: Share of an element's text that one inside it has to hold to be taken for the whole.
CORE_SHARE = 0.6
#: Letters by which two texts are taken for one.
_SAME_LETTERS = 60
_STORY_LETTERS = 40
_STORY_CHARS = 60
_DESCRIPTION_CHARS = 40
_HOLDERS = ("p", "h2", "h3", "h4", "div", "strong", "span", "em")
_ELSEWHERE = frozenset({"nav", "footer", "aside", "figure", "figcaption", "a", "li", "form"})
_NAMED = re.compile(
    r"(?i)(^|[\s_-])(teaser(-?text)?|lead(-?text)?|lede|intro(-?text|duction)?|excerpt|deck|dek|stand-?first|summary|"
    r"abstract|description|sub-?(title|head(line)?)|chapo|vorspann|entradilla|bajada|copete|occhiello|sommario)($|[\s_-])"
)


def standfirst(tree: Any, text: str, *, metas: Mapping[str, str], data: Structured) -> str:
    """The summary paragraph of a page whose body text is `text`; empty if there is none or the text has it already."""
    heading = heading_of(tree, metas)
    if heading is None or not text:
        return ""
    said = squeezed(text)
    told = (metas.get("description", ""), metas.get("og:description", ""), *strings(data.article.get("description")))
    descriptions = [squeezed(part)[:_SAME_LETTERS] for part in told if len(part) >= _DESCRIPTION_CHARS]
    paragraphs = (line for line in text.splitlines() if len(line) >= _STORY_CHARS)
    begins = [
        start for line, _ in zip(paragraphs, range(3), strict=False) if (start := squeezed(line)[:_STORY_LETTERS])
    ]
    looked_at = 0
    nodes = tree.iter(heading.tag, *_HOLDERS)
    while next(nodes, heading) is not heading:
        pass
    for node in nodes:
        looked_at += 1
        line = text_of(node)
        letters = squeezed(line)
        if looked_at > REACH or (len(line) >= _STORY_CHARS and letters.startswith(tuple(begins))):
            return ""
        if not LEAST_CHARS <= len(line) <= MOST_CHARS or letters[:_SAME_LETTERS] in said:
            continue
        if (_is_described(letters, descriptions) or _is_named(node)) and _is_prose(node, line):
            return _core(node, line)
    return ""


def _core(node: Any, line: str) -> str:
    """The text without bylines and buttons that share its element: of an element inside that holds most of it."""
    for child in node.iterdescendants(*_HOLDERS):
        inner = text_of(child)
        if LEAST_CHARS <= len(inner) < len(line) and len(inner) >= CORE_SHARE * len(line):
            return _core(child, inner)
    return line


def _is_described(letters: str, descriptions: list[str]) -> bool:
    return any(letters.startswith(told) or told.startswith(letters[:_SAME_LETTERS]) for told in descriptions if told)


def _is_named(node: Any) -> bool:
    parent = node.getparent()
    around = [node] if parent is None else [node, parent]
    names = " ".join(f"{part.get('class') or ''} {part.get('itemprop') or ''}" for part in around)
    return bool(_NAMED.search(names)) and next(node.iter("a"), None) is None


def _is_prose(node: Any, line: str) -> bool:
    return (
        next(node.iter("script", "style", "noscript"), None) is None
        and not any(part.tag in _ELSEWHERE for part in (node, *node.iterancestors()))
        and not credit_of(line)
    )

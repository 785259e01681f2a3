"""Which part of a page is the story: its root, its heading, its head, and the frame around it.

Pictures are found in one walk from the top that never enters the frame (navigation, sidebars, teasers), so that each
element is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.news.page.markup import text_of

#: A paragraph of this length belongs to the story; shorter ones are datelines and labels.
PARAGRAPH_CHARS = 60
#: A head may have one such paragraph (the summary) before its picture.
HEAD_PARAGRAPHS = 1
_FRAME = re.compile(
    r"(?i)(^|[\s_-])(related|sidebar|recommend\w*|teasers?|promos?|most-?(read|popular|viewed)|popular|trending|newsletter|"
    r"comments?|footer|(?<!article-)masthead|nav(bar|igation)?|menu|advert\w*|ads?|sponsor\w*|social|share|"
    r"author-?(bio|box|image|avatar|info)?|byline|read-?(more|next|also)|more-(stories|news|from|on)|outbrain|taboola|"
    r"widget|avatar|logo|sprite|icon|next-article|banners?|topbar|breaking|popup|modal|captcha)($|[\s_-])"
)
_SAID = re.compile(r"(?i)caption|photographer")
_PICTURED = re.compile(r"(?i)(photo|image|picture|figure|media|foto|bild|img)")


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture element of the page. `place`: "before" the heading, in the "head" (up to the first paragraphs), in the
    "body"."""

    node: Any
    place: Literal["before", "head", "body"]


@dataclass(frozen=True, slots=True)
class Area:
    """The story's part of a page: `pictures` in page order, `captions` are elements of the head that hold a caption."""

    root: Any
    pictures: tuple[Placed, ...]
    captions: tuple[Any, ...]


def area_of(tree: Any, metas: Mapping[str, str]) -> Area:
    """Walk the story's part of a page once."""
    heading = heading_of(tree, metas)
    above = set(heading.iterancestors()) if heading is not None else set()
    root = story_root(tree, above)
    inside = {root, *root.iterancestors()}
    top = root
    while heading is not None and top not in above and top.getparent() is not None:
        top = top.getparent()
    pictures: list[Placed] = []
    captions: list[Any] = []
    passed_heading = heading is None or heading not in set(top.iter("h1"))
    paragraphs = 0
    for node in _walk(top, above | inside | _holders_of_text(root)):
        if node is heading:
            passed_heading = True
        elif node.tag == "p":
            if paragraphs <= HEAD_PARAGRAPHS and len(text_of(node)) >= PARAGRAPH_CHARS and _outside_figure(node):
                paragraphs += 1
        elif node.tag in ("img", "amp-img"):
            own = root in node.iterancestors()
            if not own and paragraphs > HEAD_PARAGRAPHS:
                continue
            pictures.append(
                Placed(node, "before" if not passed_heading else "head" if paragraphs <= HEAD_PARAGRAPHS else "body")
            )
        elif paragraphs <= HEAD_PARAGRAPHS:
            captions.append(node)
    return Area(root, tuple(pictures), tuple(captions))


def _holders_of_text(root: Any) -> set[Any]:
    """The element with most paragraph text and what is around it: no frame, whatever the classes say."""
    sizes: dict[Any, int] = {}
    for paragraph in root.iter("p"):
        parent = paragraph.getparent()
        sizes[parent] = sizes.get(parent, 0) + len("".join(paragraph.itertext()))
    if not sizes:
        return set()
    best = max(sizes, key=lambda node: sizes[node])
    return {best, *best.iterancestors()}


def _outside_figure(node: Any) -> bool:
    return not any(
        above.tag in ("figure", "figcaption") or "caption" in (above.get("class") or "").lower()
        for above in (node, *node.iterancestors())
    )


def _walk(top: Any, kept: set[Any]) -> Iterator[Any]:
    """Headings, paragraphs, pictures and captions below an element in page order, without frames."""
    stack = [top]
    while stack:
        node = stack.pop()
        tag = node.tag
        if not isinstance(tag, str) or tag in ("script", "style", "template"):
            continue
        if node is not top:
            if tag in ("img", "amp-img", "h1", "p"):
                yield node
                if tag in ("img", "amp-img"):
                    continue
            elif node not in kept and is_frame(node):
                continue
            if tag != "p" and (tag == "figcaption" or _SAID.search(node.get("class") or "")):
                yield node
        stack.extend(reversed(node))


def is_frame(node: Any) -> bool:
    """Whether an element belongs to the frame of the page by its tag or class."""
    named = f"{node.get('class') or ''} {node.get('id') or ''}"
    if node.tag in ("footer", "nav") or (node.tag == "header" and node.getparent().tag == "body"):
        return True
    if node.tag == "aside":
        return not is_pictured(node)
    return bool(_FRAME.search(named))


def is_pictured(node: Any) -> bool:
    """Whether a block is made for one picture and what is said of it, by its class and by what it holds."""
    named = f"{node.get('class') or ''} {node.get('id') or ''} {node.get('itemtype') or ''}"
    if not _PICTURED.search(named):
        return False
    pictures = sum(next(image.iterancestors("noscript"), None) is None for image in node.iter("img"))
    return pictures == 1 and len(text_of(node)) <= 600


def heading_of(tree: Any, metas: Mapping[str, str]) -> Any | None:
    """The h1 of the story: of several the one with most words of the title."""
    heads = [node for node in tree.iter("h1") if text_of(node)]
    if len(heads) < 2:
        return heads[0] if heads else None
    title = metas.get("og:title") or next((text_of(node) for node in tree.iter("title")), "")
    wanted = set(re.findall(r"\w+", title.lower()))
    return max(heads, key=lambda node: len(wanted & set(re.findall(r"\w+", text_of(node).lower()))))


def story_root(tree: Any, above: set[Any] | frozenset[Any] = frozenset()) -> Any:
    """The element that holds the story: the article or main element with most paragraphs, else the body.

    `above` are the elements that hold the heading; they are no frame, whatever their class.
    """
    best, most = None, 0
    for node in tree.xpath("//article | //main | //*[@role='main'] | //*[@itemprop='articleBody']"):
        if any(part not in above and part.tag not in ("body", "html") and is_frame(part) for part in _upwards(node)):
            continue
        size = sum(len("".join(p.itertext())) for p in node.iter("p"))
        # an outer element with the same text also holds the lead picture above it
        if size > most * 1.02:
            best, most = node, size
    if best is None:
        return next(iter(tree.iter("body")), tree)
    for outer in best.iterancestors("article", "main"):
        if sum(sum(1 for _ in inner.iter("p")) > 2 for inner in outer.iter("article")) < 2:
            best = outer
    # the lead picture often stands above the element that holds the text
    while next(best.iter("img", "amp-img"), None) is None and best.getparent().tag not in ("body", "html"):
        best = best.getparent()
    return best


def _upwards(node: Any) -> Iterator[Any]:
    yield node
    yield from node.iterancestors()

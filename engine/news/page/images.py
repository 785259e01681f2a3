"""The pictures of a story with what is said of them, from figures, galleries, lazy loading, meta tags and JSON-LD.

Order is the page's; each picture once, in its largest size; the lead picture is marked. A share image in the meta
tags does not count merely because it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from engine.core.schema import ImageClaim
from engine.news.page.captions import caption_near, caption_of, credit_of, licence_of
from engine.news.page.jsonld import Structured, strings
from engine.news.page.pictures import fold_key, is_never_a_photo, largest, size_in, width_in_url
from engine.web.urls import join

#: A picture declared smaller than this on either side is furniture (icons, avatars); the real limit comes later.
MIN_DECLARED_PX = 100
_SRC = (
    "data-src",
    "data-original",
    "data-lazy-src",
    "data-lazy",
    "data-full-src",
    "data-hi-res-src",
    "data-image",
    "src",
)
_SRCSET = ("data-srcset", "data-lazy-srcset", "srcset")
_OUTSIDE = re.compile(
    r"(?i)(^|[\s_-])(related|sidebar|recommend\w*|teasers?|promos?|most-?(read|popular)|popular|trending|newsletter|comments?|"
    r"footer|masthead|nav|menu|advert\w*|ads?|sponsor\w*|social|share|author-?(bio|box|image|avatar)?|byline|"
    r"read-?(more|next|also)|more-(stories|news|from|on)|outbrain|taboola|widget|avatar|logo|sprite|icon|next-article)($|[\s_-])"
)
_FURNITURE = re.compile(
    r"(?i)(^|[\s_-])(avatar|logo|sprite|icon|emoji|badge|tracking|pixel|author|byline|ad|advert)($|[\s_-])"
)
_PLACEHOLDER = re.compile(r"(?i)(^data:|blank|spacer|placeholder|transparent|1x1|pixel|loading|lazy|grey|gray)")


def page_images(tree: Any, url: str, *, metas: Mapping[str, str], data: Structured) -> tuple[ImageClaim, ...]:
    """Image claims of a page, lead first marked, largest sizes, in page order."""
    found: dict[str, ImageClaim] = {}
    for claim in _body(tree, url):
        key = fold_key(claim.url)
        old = found.get(key)
        found[key] = claim if old is None else _merge(old, claim)
    structured = list(_structured(data, url))
    for claim in structured:
        key = fold_key(claim.url)
        if key in found:
            found[key] = _merge(found[key], claim, keep_url=True)
    lead = _lead(found, structured, metas, url, orphan=_orphan_caption(tree))
    rest = [claim for key, claim in found.items() if lead is None or key != fold_key(lead.url)]
    if lead is None:
        first = rest[0].model_copy(update={"role": "lead"}) if rest else None
        return (first, *rest[1:]) if first is not None else ()
    if fold_key(lead.url) in found:
        return tuple(lead if key == fold_key(lead.url) else claim for key, claim in found.items())
    return (lead, *rest)


def _lead(
    found: Mapping[str, ImageClaim],
    structured: list[ImageClaim],
    metas: Mapping[str, str],
    url: str,
    *,
    orphan: tuple[str, str],
) -> ImageClaim | None:
    shared = [claim for claim in (_shared(metas, url, "og"), _shared(metas, url, "twitter")) if claim is not None]
    for claim in [*shared, *structured]:
        known = found.get(fold_key(claim.url))
        if known is not None:
            return _merge(known, claim, keep_url=True).model_copy(update={"role": "lead"})
    # a picture that only the meta tags know leads where the body shows none with a caption
    if found and any(claim.caption for claim in found.values()):
        return None
    first = next(iter([*structured, *shared]), None)
    if first is None:
        return None
    caption, credit = ("", "") if first.caption else orphan
    return first.model_copy(
        update={"role": "lead", "caption": first.caption or caption, "credit": first.credit or credit}
    )


def _orphan_caption(tree: Any) -> tuple[str, str]:
    """(caption, credit) of the one figure whose picture a script will put in: it is that of the lead picture, which the
    meta tags name. Where several figures are empty, it is not known whose caption is whose."""
    figures = [
        node
        for node in tree.xpath("//figure | //*[contains(concat(' ',@class,' '),' wp-caption ')]")
        if next(node.iter("img", "video", "iframe"), None) is None and not _outside(node)
    ]
    return caption_of(figures[0]) if len(figures) == 1 else ("", "")


def _shared(metas: Mapping[str, str], url: str, kind: Literal["og", "twitter"]) -> ImageClaim | None:
    raw = metas.get(f"{kind}:image") or metas.get(f"{kind}:image:src") or metas.get(f"{kind}:image:url") or ""
    place = join(url, raw)
    width, height = size_in(metas.get(f"{kind}:image:width")), size_in(metas.get(f"{kind}:image:height"))
    if not place or is_never_a_photo(place) or _too_small(width, height):
        return None
    return ImageClaim(
        url=place,
        alt=metas.get(f"{kind}:image:alt", ""),
        width=width or width_in_url(place),
        height=height,
        role="meta",
    )


def _structured(data: Structured, url: str) -> Iterator[ImageClaim]:
    value = data.article.get("image")
    for item in value if isinstance(value, list) else [value]:
        for raw in strings(item, "url", "contentUrl", "@id")[:1]:
            place = join(url, raw)
            if not place or is_never_a_photo(place):
                continue
            node = item if isinstance(item, Mapping) else {}
            width, height = (size_in(str(node.get(side, ""))) for side in ("width", "height"))
            if _too_small(width, height):
                continue
            caption = next(iter(strings(node.get("caption"), "@value", "text")), "")
            credit = next(
                iter(
                    strings(node.get("creditText"))
                    + strings(node.get("creator"), "name")
                    + strings(node.get("author"), "name")
                    + strings(node.get("copyrightHolder"), "name")
                ),
                "",
            )
            yield ImageClaim(
                url=place,
                caption=caption,
                credit=credit or credit_of(caption),
                rights=next(iter(strings(node.get("license"), "url", "name")), "") or licence_of(f"{caption} {credit}"),
                width=width,
                height=height,
                role="meta",
            )


def _body(tree: Any, url: str) -> Iterator[ImageClaim]:
    for image in story_root(tree).iter("img", "amp-img"):
        if _outside(image):
            continue
        place, width = _best_source(image, url)
        declared = size_in(image.get("width")), size_in(image.get("height"))
        if not place or is_never_a_photo(place) or _too_small(*declared):
            continue
        if _FURNITURE.search(f"{image.get('class') or ''} {image.get('id') or ''}"):
            continue
        if _in_noscript(image) and _has_live_twin(image):
            continue
        caption, credit = caption_near(image)
        alt = " ".join((image.get("alt") or "").split())
        yield ImageClaim(
            url=place,
            caption=caption,
            credit=credit,
            rights=licence_of(f"{caption} {credit}"),
            alt=alt[:500],
            width=width or declared[0],
            height=None if width else declared[1],
            role="gallery" if _in_gallery(image) else "body",
        )


def story_root(tree: Any) -> Any:
    """The element that holds the story: the article or main element with most paragraphs, else the body."""
    best, most = None, 0
    for node in tree.xpath("//article | //main | //*[@role='main'] | //*[@itemprop='articleBody']"):
        if _outside(node):
            continue
        size = sum(len("".join(p.itertext())) for p in node.iter("p"))
        # an outer element with the same text also holds the lead picture above it
        if size > most * 1.02:
            best, most = node, size
    if best is None:
        return next(iter(tree.xpath("//body")), tree)
    outer = best
    while outer.getparent() is not None and outer.getparent().tag not in ("body", "html"):
        outer = outer.getparent()
        if outer.tag in ("article", "main") and not outer.xpath(".//article[count(.//p) > 2][2]"):
            best = outer
    # the lead picture often stands above the element that holds the text
    while next(best.iter("img", "amp-img"), None) is None and best.getparent().tag not in ("body", "html"):
        best = best.getparent()
    return best


def _best_source(image: Any, url: str) -> tuple[str, int | None]:
    """The largest address of an image that is not a placeholder, and the width srcset states for it."""
    best, size = "", 0.0
    for name in _SRCSET:
        found, width = largest(url, image.get(name) or "")
        if found and width > size and not _PLACEHOLDER.search(urlsplit(found).path.rsplit("/", 1)[-1]):
            best, size = found, width
    parent = image.getparent()
    if not best and parent is not None and parent.tag == "picture":
        for source in parent.iter("source"):
            for name in _SRCSET:
                found, width = largest(url, source.get(name) or "")
                if found and width > size and "avif" not in (source.get("type") or ""):
                    best, size = found, width
    plain = [join(url, image.get(name) or "") for name in _SRC]
    named = [place for place in plain if place and not _PLACEHOLDER.search(urlsplit(place).path.rsplit("/", 1)[-1])]
    if best:
        # srcset of small thumbnails beside a full-size src that says so
        told = max((width_in_url(place) or 0 for place in named), default=0)
        if told > size > 1 and size < 2000:
            return next(place for place in named if width_in_url(place) == told), told
        return best, int(size) if size >= MIN_DECLARED_PX and size != 1000 and size != 2000 else None
    return (named[0], width_in_url(named[0])) if named else ("", None)


def _outside(node: Any) -> bool:
    """Whether an element belongs to the frame of the page. What holds the headline does not, whatever its class."""
    current = node
    while current is not None and current.tag not in ("body", "html"):
        if current.tag in ("aside", "footer", "nav") or (current.tag == "header" and current.getparent().tag == "body"):
            return True
        named = f"{current.get('class') or ''} {current.get('id') or ''}"
        if current.tag != "img" and _OUTSIDE.search(named) and not current.xpath(".//h1"):
            return True
        current = current.getparent()
    return False


def _in_noscript(image: Any) -> bool:
    return next(image.iterancestors("noscript"), None) is not None


def _has_live_twin(image: Any) -> bool:
    """Whether a script-loaded image stands beside this noscript copy."""
    block = next(image.iterancestors("noscript"), None)
    if block is None or block.getparent() is None:
        return False
    return bool(block.getparent().xpath(".//img[not(ancestor::noscript)]"))


def _in_gallery(image: Any) -> bool:
    return any(
        re.search(
            r"(?i)(gallery|slideshow|carousel|swiper|slider)", f"{node.get('class') or ''} {node.get('id') or ''}"
        )
        for node in image.iterancestors()
    )


def _too_small(width: int | None, height: int | None) -> bool:
    return (width is not None and width < MIN_DECLARED_PX) or (height is not None and height < MIN_DECLARED_PX)


def _merge(old: ImageClaim, new: ImageClaim, *, keep_url: bool = False) -> ImageClaim:
    """One picture met twice: the larger address, and whatever is said of it anywhere."""
    larger = not keep_url and (new.width or 0) > (old.width or 0)
    return old.model_copy(
        update={
            "url": new.url if larger else old.url,
            "width": new.width if larger else old.width,
            "height": new.height if larger else old.height,
            "caption": old.caption or new.caption,
            "credit": old.credit or new.credit,
            "rights": old.rights or new.rights,
            "alt": old.alt or new.alt,
        }
    )

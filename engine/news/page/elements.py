"""One picture element of a page: which address it shows in the largest size, and whether it is furniture.

Lazy loading, srcset, picture sources and noscript copies are understood; what is said of the picture is `captions`'.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from engine.core.schema import ImageClaim
from engine.news.page.captions import caption_near, licence_of
from engine.news.page.pictures import is_never_a_photo, largest, size_in, width_in_url
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
_FURNITURE = re.compile(
    r"(?i)(^|[\s_-])(avatar|logo|sprite|icon|emoji|badge|tracking|pixel|author|byline|ad|advert)($|[\s_-])"
)
_PLACEHOLDER = re.compile(r"(?i)(^data:|blank|spacer|placeholder|transparent|1x1|pixel|loading|lazy|grey|gray)")
_ADDRESS = re.compile(r"^(https?:)?//[^\s,]+/[^\s,]+$")


def claim_of(image: Any, url: str) -> ImageClaim | None:
    """What an img element shows and what is said of it; None for furniture."""
    place, width = best_source(image, url)
    declared = size_in(image.get("width")), size_in(image.get("height"))
    if not place or is_never_a_photo(place) or too_small(*declared):
        return None
    if _FURNITURE.search(f"{image.get('class') or ''} {image.get('id') or ''}"):
        return None
    if _in_noscript(image) and _has_live_twin(image):
        return None
    caption, credit = caption_near(image)
    alt = " ".join((image.get("alt") or "").split())
    return ImageClaim(
        url=place,
        caption=caption,
        credit=credit,
        rights=licence_of(f"{caption} {credit}"),
        alt=alt[:500],
        width=width or declared[0],
        height=None if width else declared[1],
        role="gallery" if _in_gallery(image) else "body",
    )


def is_usable(image: Any, url: str) -> bool:
    """Whether an element shows a picture at all, and no placeholder that a script will replace."""
    place, _ = best_source(image, url)
    return bool(place) and not is_never_a_photo(place)


def best_source(image: Any, url: str) -> tuple[str, int | None]:
    """The largest address of an image that is not a placeholder, and the width srcset states for it."""
    best, size = "", 0.0
    for name in _SRCSET:
        found, width = largest(url, image.get(name) or "")
        if found and width > size and not _PLACEHOLDER.search(urlsplit(found).path.rsplit("/", 1)[-1]):
            best, size = found, width
    parent = image.getparent()
    while parent is not None and parent.tag == "source":
        parent = parent.getparent()
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
    if not named:
        # scripts have names of their own for the attribute that holds the address
        given = [value for name, value in image.attrib.items() if name.startswith("data-") and _ADDRESS.match(value)]
        named = [place for value in given if (place := join(url, value)) and not is_never_a_photo(place)]
    return (named[0], width_in_url(named[0])) if named else ("", None)


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


def too_small(width: int | None, height: int | None) -> bool:
    """Whether a declared side says icon, avatar or counter."""
    return (width is not None and width < MIN_DECLARED_PX) or (height is not None and height < MIN_DECLARED_PX)

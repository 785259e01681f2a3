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
from engine.news.page.area import area_of
from engine.news.page.captions import credit_of, licence_of
from engine.news.page.elements import claim_of, too_small
from engine.news.page.jsonld import Structured, strings
from engine.news.page.lead import lead_of, merge, orphan_caption
from engine.news.page.pictures import PICTURE_SUFFIX, fold_key, is_never_a_photo, size_in, width_in_url
from engine.web.urls import join, url_key

_HERO = re.compile(
    r"(?i)(hero|lead|featured?|main|cover|post-?(image|thumb\w*|img)|article-?(image|img|media|header)|figure|full-?width)"
)
#: A picture declared this wide above the heading is no icon and no button.
LARGE_PX = 400


def page_images(tree: Any, url: str, *, metas: Mapping[str, str], data: Structured) -> tuple[ImageClaim, ...]:
    """Image claims of a page, lead first marked, largest sizes, in page order."""
    area = area_of(tree, metas)
    structured = list(_structured(data, url))
    shared = [claim for claim in (_shared(metas, url, "og"), _shared(metas, url, "twitter")) if claim is not None]
    told = {fold_key(claim.url) for claim in [*shared, *structured]}
    found: dict[str, ImageClaim] = {}
    places: dict[str, str] = {}
    authors = _author_names(metas, data)
    for placed in area.pictures:
        claim = claim_of(placed.node, url)
        if claim is None or (claim.alt and claim.alt.lower() in authors):
            continue
        key = fold_key(claim.url)
        # above the heading stand banners and bars as often as the lead picture
        if placed.place == "before" and key not in told and not _is_large(placed.node, claim):
            continue
        old = found.get(key)
        found[key] = claim if old is None else merge(old, claim)
        # a picture that leads to another page is that page's, or its writer's
        linked = placed.place != "body" and _leads_elsewhere(placed.node, url)
        if placed.place == "before" and linked and key not in told:
            found.pop(key)
            continue
        small = placed.place == "head" and not claim.caption and not _is_large(placed.node, claim)
        places.setdefault(key, "body" if linked or small else placed.place)
    for claim in structured:
        key = fold_key(claim.url)
        if key in found:
            found[key] = merge(found[key], claim, keep_url=True)
    lead = lead_of(found, places, [*shared, *structured], orphan=lambda: orphan_caption(area, tree, url))
    if lead is None:
        return tuple(found.values())
    key = fold_key(lead.url)
    if key in found:
        return tuple(lead if other == key else claim for other, claim in found.items())
    return (lead, *found.values())


def _author_names(metas: Mapping[str, str], data: Structured) -> frozenset[str]:
    names = [*strings(data.article.get("author"), "name"), metas.get("author", ""), metas.get("byl", "")]
    return frozenset(re.sub(r"(?i)^by\s+", "", name).strip().lower() for name in names if name.strip())


def _leads_elsewhere(image: Any, url: str) -> bool:
    link = next(image.iterancestors("a"), None)
    target = join(url, link.get("href") or "") if link is not None else ""
    if not target or urlsplit(target).path.lower().endswith(PICTURE_SUFFIX):
        return False
    return url_key(target) != url_key(url)


def _is_large(image: Any, claim: ImageClaim) -> bool:
    """Whether a picture above the heading is large by what is written: its size, or a class that says so."""
    if (claim.width or 0) >= LARGE_PX:
        return True
    around = [image, *list(image.iterancestors())[:4]]
    return any(
        _HERO.search(f"{node.get('class') or ''} {node.get('id') or ''}") or node.tag == "figure" for node in around
    )


def _shared(metas: Mapping[str, str], url: str, kind: Literal["og", "twitter"]) -> ImageClaim | None:
    raw = metas.get(f"{kind}:image") or metas.get(f"{kind}:image:src") or metas.get(f"{kind}:image:url") or ""
    place = join(url, raw)
    width, height = size_in(metas.get(f"{kind}:image:width")), size_in(metas.get(f"{kind}:image:height"))
    if not place or is_never_a_photo(place) or too_small(width, height):
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
            if too_small(width, height):
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

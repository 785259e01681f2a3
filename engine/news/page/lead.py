"""The lead picture of a story, and the caption that the page keeps apart from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.core.schema import ImageClaim
from engine.news.page.area import Area
from engine.news.page.captions import MAX_CAPTION_CHARS, caption_of
from engine.news.page.elements import MIN_DECLARED_PX, is_usable
from engine.news.page.markup import text_of
from engine.news.page.pictures import fold_key, tokens_of, width_in_url


def lead_of(
    found: Mapping[str, ImageClaim],
    places: Mapping[str, str],
    told: Sequence[ImageClaim],
    *,
    orphan: Callable[[], tuple[str, str]],
) -> ImageClaim | None:
    """The lead picture: the one that the meta tags name too, then the one in the head, then the meta tags' own, then
    the first. `told` are the claims of meta tags and structured data."""
    for claim in told:
        key = fold_key(claim.url)
        known = found.get(key) or _alike(claim, found)
        if known is None:
            continue
        merged = merge(known, claim, keep_url=not _is_stand_in(known)).model_copy(update={"role": "lead"})
        return merged if merged.caption else _captioned(merged, orphan())
    head = [claim for key, claim in found.items() if places[key] == "head"]
    first = next(iter(found.values()), None)
    for claim in [*(claim for claim in head if claim.caption), *(claim for claim in head if claim is first)]:
        return claim.model_copy(update={"role": "lead"})
    said = orphan()
    captioned = next((claim for claim in found.values() if claim.caption), None)
    # a picture that only the meta tags know leads where its caption is there, or where the body shows none with one
    if told and (said[0] or captioned is None):
        first = told[0]
        for other in told[1:]:
            if fold_key(other.url) == fold_key(first.url):
                first = merge(first, other)
        first = first.model_copy(update={"role": "lead"})
        return first if first.caption else _captioned(first, said)
    first = captioned or next(iter(found.values()), None)
    return first.model_copy(update={"role": "lead"}) if first is not None else None


def _captioned(claim: ImageClaim, said: tuple[str, str]) -> ImageClaim:
    caption, credit = said
    return claim.model_copy(update={"caption": caption, "credit": claim.credit or credit}) if caption else claim


def _alike(claim: ImageClaim, found: Mapping[str, ImageClaim]) -> ImageClaim | None:
    """The one picture of the page whose address shares a name with a claim that no other picture's address has."""
    wanted = tokens_of(claim.url)
    names = {key: tokens_of(other.url) & wanted for key, other in found.items()}
    own = [
        key for key, words in names.items() if words - {w for other, ws in names.items() if other != key for w in ws}
    ]
    return found[own[0]] if len(own) == 1 else None


def _is_stand_in(claim: ImageClaim) -> bool:
    """Whether the page's address is that of a blurred or tiny picture that a script replaces."""
    width = width_in_url(claim.url) or claim.width
    return width is not None and width < MIN_DECLARED_PX


def orphan_caption(area: Area, tree: Any, url: str) -> tuple[str, str]:
    """(caption, credit) of the one block in the story's head whose picture a script will put in: it is that of the lead
    picture, which the meta tags name. Where several are empty, it is not known whose caption is whose."""
    blocks = []
    for node in area.captions:
        block = next(node.iterancestors("figure"), None)
        if block is None:
            block = node.getparent() if node.getparent() is not None else node
        around = [block, *(part for part in block.iterancestors() if len(text_of(part)) <= MAX_CAPTION_CHARS)]
        if not any(is_usable(image, url) for part in around for image in part.iter("img")) and caption_of(block)[0]:
            blocks.append(block)
    said = {caption_of(block) for block in blocks}
    if len(said) == 1:
        return said.pop()
    if said:
        longest = max(said, key=lambda pair: len(pair[0]))
        # nested blocks tell the same in parts; others are of other pictures
        return longest if all(pair[0] in longest[0] for pair in said) else ("", "")
    figures = [node for node in tree.iter("figure") if next(node.iter("img", "video", "iframe"), None) is None]
    return caption_of(figures[0]) if len(figures) == 1 else ("", "")


def merge(old: ImageClaim, new: ImageClaim, *, keep_url: bool = False) -> ImageClaim:
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

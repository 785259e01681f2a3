"""What is said of a picture: caption, credit and licence lines beside it."""

from __future__ import annotations

import re
from typing import Any

from engine.news.page.markup import text_of

_CAPTION_CLASS = "contains(translate(concat(' ',@class,' ',@itemprop,' ',@data-testid),'CAPTION','caption'),'caption')"
_CREDIT_CLASS = (
    "contains(translate(concat(' ',@class,' ',@itemprop),'CREDITOPYHSUARN','creditopyhsuarn'),'credit') or "
    "contains(translate(@class,'COPYRIGHT','copyright'),'copyright') or "
    "contains(translate(@class,'PHOTOGRAPHER','photographer'),'photographer') or "
    "contains(translate(@class,'IMGSOURCE-_','imgsource-_'),'image-source')"
)
_CREDIT = re.compile(
    r"(?:\(?(?:Photos?|Picture|Image|Foto|Bild|Fotos|Crédit(?: photo)?|Credit|Photograph|Quelle|Foto di|Pictured?)"
    r"(?:\s+(?:by|courtesy(?: of)?|von|credit))?\s*[:/]\s*|\((?:Photo|Image|Picture) (?:by|courtesy of|via) |"
    r"Photo(?:graph)? by |Courtesy of |©\s*(?:Copyright\s*)?)"
    r"(?P<who>[^()|\n]{2,80}?)\)?\s*\.?\s*$"
)
_AGENCY = re.compile(
    r"(?P<who>(?:[\w.'’\- ]{2,40}\s*/\s*)?(?:AP Photo|Associated Press|Reuters|REUTERS|AFP|Getty Images|EPA|dpa|"
    r"PA Wire|Bloomberg|Shutterstock|NASA|Xinhua|Magnum)(?:\s*/\s*[\w.'’\- ]{2,40})?)\)?\s*\.?\s*$"
)
_LICENCE = re.compile(
    r"\b(CC[ -](?:BY(?:-NC)?(?:-SA|-ND)?|0)(?:[ -]\d\.\d)?|Creative Commons[^.]{0,40}|Public domain)\b", re.I
)
MAX_CAPTION_CHARS = 1000


def caption_near(image: Any) -> tuple[str, str]:
    """(caption, credit) of an img element, from its figure or the block that holds only it."""
    block = _block(image)
    if block is None:
        return _clip(image.get("data-caption") or ""), ""
    caption, credit = caption_of(block)
    if not caption and (said := image.get("data-caption")):
        return _clip(said), credit or credit_of(said)
    return caption, credit


def caption_of(block: Any) -> tuple[str, str]:
    """(caption, credit) that a figure or block holds."""
    credit = next((text for node in block.xpath(f".//*[{_CREDIT_CLASS}]") if (text := text_of(node))), "")
    captions = block.xpath(".//figcaption") or block.xpath(f".//*[{_CAPTION_CLASS}]")
    caption = next((text for node in captions if (text := text_of(node))), "")
    return _clip(caption), _clip(credit_of(credit) or credit) if credit else credit_of(caption)


def _block(image: Any) -> Any | None:
    """The figure around an image, or the nearest block with a caption and no other picture."""
    current = image.getparent()
    for _ in range(6):
        if current is None or current.tag in ("body", "article", "main", "html"):
            return None
        if current.tag == "figure":
            return current
        if current.xpath(f".//figcaption | .//*[{_CAPTION_CLASS}]"):
            # one caption below several pictures is the gallery's, a long text is the story's
            if (
                len(current.xpath(".//img[not(ancestor::noscript)]")) <= 1
                and len(text_of(current)) <= MAX_CAPTION_CHARS
            ):
                return current
            return None
        current = current.getparent()
    return None


def credit_of(text: str) -> str:
    """The credit at the end of a caption, e.g. "A. Reed" of "The mayor. Photo: A. Reed"; empty if there is none."""
    match = _CREDIT.search(text) or _AGENCY.search(text)
    return _clip(" ".join(match["who"].split()).strip(" .:|")) if match else ""


def licence_of(text: str) -> str:
    """A licence that a caption or credit line names; empty if it does not."""
    match = _LICENCE.search(text)
    return " ".join(match[1].split()) if match else ""


def _clip(text: str) -> str:
    return " ".join(text.split())[:MAX_CAPTION_CHARS]

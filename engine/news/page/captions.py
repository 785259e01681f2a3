"""What is said of a picture: caption, credit and licence lines beside it."""

from __future__ import annotations

import re
from typing import Any

from engine.news.page.area import is_pictured
from engine.news.page.markup import text_of

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
#: Levels from an image up to the block that holds its caption.
MAX_LEVELS = 7
#: Text beside a picture in a block that is not marked as a caption: longer is the story's.
PLAIN_CHARS = 400
#: A link with more text leads to another story.
LINK_CHARS = 3
#: A credit line with this many words says what is seen as well.
TELLING_WORDS = 6
_BUTTON = re.compile(r"(?i)\s*(?:\.\.\.|…)?\s*(?:(?:show|read|see) )?(?:more|less)$|\s*\+ clicca per ingrandire$")
_NAMED = re.compile(r"(?i)caption")
_CREDIT_ONLY = re.compile(
    r"(?i)^\W*(?:(?:photo(?:graph|s)?|image|picture|foto|bild)\s*(?::|by\b|copyright\b|credit\b|courtesy\b|/)|"
    r"credit\b|copyright\b|©|courtesy\b|quelle\s*:|source\s*:)(?:\W*[\w.'’\-]+){0,8}\W*$"
)
_CREDIT_START = re.compile(r"(?i)^\W*(photo|image|picture|foto|credit|copyright|©|quelle|source|bild)")


def caption_near(image: Any) -> tuple[str, str]:
    """(caption, credit) of an img element, from its figure or the block that holds only it."""
    block = _block(image)
    caption, credit = caption_of(block) if block is not None else ("", "")
    if not caption and (said := image.get("data-caption")):
        return _clip(said), credit or credit_of(said)
    return caption, credit


def caption_of(block: Any) -> tuple[str, str]:
    """(caption, credit) that a figure or block holds."""
    credit = next((text for node in block.xpath(f".//*[{_CREDIT_CLASS}]") if (text := text_of(node))), "")
    caption = _marked(block) or _in_attributes(block)
    if not caption and len(credit.split()) >= TELLING_WORDS and not _CREDIT_START.match(credit):
        caption, credit = credit, ""
    if not caption and is_pictured(block):
        caption = _plain(block)
        if _CREDIT_ONLY.match(caption):
            caption, credit = "", credit or caption
    if credit and caption == credit:
        return _clip(caption), _clip(credit_of(credit) or credit)
    return _clip(caption), _clip(credit_of(credit) or credit) if credit else credit_of(caption)


def _marked(block: Any) -> str:
    """The longest text of the elements that are marked as captions; of one inside another the inner one, unless it
    holds the credit only."""
    captions = [node for node in block.iter("figcaption") if text_of(node)]
    if not captions:
        captions = [node for node in block.iter() if node is not block and _is_marked(node) and text_of(node)]
        if not captions and _is_marked(block) and next(block.iter("img"), None) is None:
            captions = [block]
    best = ""
    for node in captions:
        inner = [
            text
            for part in node.iter()
            if part is not node
            and _is_marked(part)
            and not _is_credit(part)
            and (text := _said(part))
            and not _CREDIT_ONLY.match(text)
        ]
        text = max(inner, key=len) if inner else _said(node)
        if len(text) > len(best):
            best = text
    return best


def _is_marked(node: Any) -> bool:
    if not isinstance(node.tag, str) or node.tag in ("a", "input", "label", "button", "svg", "script", "img", "figure"):
        return False
    named = f"{node.get('class') or ''} {node.get('itemprop') or ''} {node.get('data-testid') or ''}"
    return bool(_NAMED.search(named))


def _is_credit(node: Any) -> bool:
    return "credit" in (node.get("class") or "").lower()


def _said(node: Any) -> str:
    """Text of a caption without the buttons that unfold it."""
    return _BUTTON.sub("", text_of(node))


def _in_attributes(block: Any) -> str:
    """A caption that a script will show, e.g. in data-c-caption."""
    for node in block.iter():
        if isinstance(node.tag, str):
            for name, value in node.attrib.items():
                if name.startswith("data-") and name.endswith("caption") and len(value.split()) >= 2:
                    return " ".join(value.split())
    return ""


def _plain(block: Any) -> str:
    """Text of a block that is made for one picture, if it is of a caption's length and leads nowhere."""
    if (
        any(len(text_of(link)) > LINK_CHARS for link in block.iter("a"))
        or next(block.iter("h2", "h3"), None) is not None
    ):
        return ""
    text = " ".join(" ".join(str(part) for part in block.xpath(".//text()[not(ancestor::script)]")).split())
    return text if len(text.split()) > 1 and len(text) <= PLAIN_CHARS else ""


def _block(image: Any) -> Any | None:
    """The figure around an image, or the nearest block with a caption and no other picture."""
    current = image.getparent()
    pictured = None
    figure = next(image.iterancestors("figure"), None)
    if figure is not None and any(text_of(node) for node in figure.iter("figcaption")):
        return figure
    for _ in range(MAX_LEVELS):
        # parsers nest what follows an unclosed <source> into it
        while current is not None and current.tag in ("source", "picture", "noscript"):
            current = current.getparent()
        if current is None or current.tag in ("body", "article", "main", "html"):
            break
        # one caption below several pictures is the gallery's, a long text is the story's
        if current.tag != "figure" and (_pictures(current) > 1 or len(text_of(current)) > MAX_CAPTION_CHARS):
            break
        if _marked(current):
            return current
        if pictured is None and is_pictured(current):
            pictured = current
        current = current.getparent()
    return figure if figure is not None else pictured


def _pictures(block: Any) -> int:
    return sum(next(image.iterancestors("noscript"), None) is None for image in block.iter("img"))


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

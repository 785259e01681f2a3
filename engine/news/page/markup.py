"""Bytes to text to a tree: which encoding, which parser. Content is read elsewhere.

The order is that of browsers (WHATWG Encoding): byte order mark, HTTP header, meta tag, UTF-8 if the bytes are,
else windows-1252. Labels mean what browsers take them for: iso-8859-1 is windows-1252, gb2312 is gb18030.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_META = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_\-:]+)", re.I)
_XML = re.compile(rb"^\s*<\?xml[^>]+encoding\s*=\s*[\"']([A-Za-z0-9_\-:]+)", re.I)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_\-:]+)", re.I)
_LABELS = {
    "iso-8859-1": "windows-1252",
    "iso8859-1": "windows-1252",
    "latin1": "windows-1252",
    "latin-1": "windows-1252",
    "us-ascii": "windows-1252",
    "ascii": "windows-1252",
    "iso-8859-9": "windows-1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs",
    "utf8": "utf-8",
    "utf-16": "utf-8",
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
    "unicode": "utf-8",
}
# Characters that neither HTML nor a record may hold; C1 controls are what a wrong latin-1 leaves.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def decode(body: bytes, content_type: str = "") -> str:
    """Text of a page or feed. Never raises; bytes that fit no declared encoding are read as windows-1252."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if body.startswith(mark):
            return _clean(body[len(mark) :].decode(name, errors="replace"))
    declared: list[str] = []
    if found := _HEADER.search(content_type):
        declared.append(found[1])
    head = body[:4096]
    for pattern in (_XML, _META):
        if match := pattern.search(head):
            declared.append(match[1].decode("ascii"))
    names = list(dict.fromkeys(_LABELS.get(name.lower(), name.lower()) for name in declared))
    for name in [*names, "utf-8"]:
        text = _try(body, name)
        if text is not None:
            return _clean(text)
    if "utf-8" in names or not names:
        # a page of UTF-8 with a few broken bytes (a cut teaser) is still UTF-8
        text = body.decode("utf-8", errors="replace")
        if text.count("\ufffd") * 50 < sum(character > "\x7f" for character in text) or text.count("\ufffd") <= 2:
            return _clean(text.replace("\ufffd", ""))
    return _clean(body.decode("windows-1252", errors="ignore"))


def _try(body: bytes, name: str) -> str | None:
    try:
        # the five bytes that windows-1252 leaves open are passed over as browsers do
        return body.decode(name, errors="ignore" if name.startswith("windows-125") else "strict")
    except (UnicodeDecodeError, LookupError):
        return None


def _clean(text: str) -> str:
    return _CONTROLS.sub("", text)


def tree_of(text: str) -> Any | None:
    """An lxml tree of the page, None where nothing can be parsed."""
    import lxml.etree
    import lxml.html

    if not text.strip():
        return None
    # comments and processing instructions count as nodes and disturb what looks at neighbours (trafilatura loses
    # paragraphs beside them)
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    # lxml.html chooses a class per tag in Python, for every element that is touched; one class for all is enough here
    parser.set_element_class_lookup(lxml.etree.ElementDefaultClassLookup(element=lxml.html.HtmlElement))
    try:
        # an encoding declaration in the text would be believed over the parser's
        found = lxml.html.document_fromstring(text.encode("utf-8", errors="ignore"), parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None
    return found if found is not None and len(found) else None


def excerpt(tree: Any, names: Sequence[str], words: Sequence[str] = ()) -> Any:
    """A small tree with stand-ins for the elements that have one of the attributes `names` (with one of the lower-case
    `words` in it, if there are any): their own text, these attributes, and what meta and time elements carry their
    value in. For readers that search a whole page many times over."""
    import lxml.etree

    root = lxml.etree.Element("html")
    for node in tree.iter("*"):
        for name in names:
            value = node.get(name)
            if value is not None and (not words or any(word in value.lower() for word in words)):
                kept = {key: told for key in (*names, "content", "datetime") if (told := node.get(key)) is not None}
                # pages have tags and characters that may be parsed but not built again
                with suppress(ValueError):
                    stand_in = lxml.etree.SubElement(root, "meta" if node.tag == "meta" else "span", kept)
                    stand_in.text = node.text
                break
    return root


def text_of(element: Any) -> str:
    """Visible text of an element on one line."""
    return " ".join(" ".join(str(part) for part in element.itertext()).split())


def squeezed(text: str) -> str:
    """The letters and digits of a text in lower case, by which two spellings of it are one."""
    return re.sub(r"\W+", "", text).lower()

"""Feeds to entries, through feedparser: bytes in, with its known faults mended. No connection.

Dates are read by `dates` from what was written, since feedparser turns odd ones into wrong ones. `bozo` is a remark:
what counts is whether usable entries came.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.core.schema import DateWitness, ImageClaim
from engine.news.dates import parse_date
from engine.news.page.captions import MAX_CAPTION_CHARS
from engine.news.page.markup import decode
from engine.news.page.pictures import PICTURE_SUFFIX, fold_key, is_never_a_photo, size_in
from engine.news.page.witnesses import witness
from engine.web.urls import join

#: Pictures declared smaller are of no use; the page has larger ones.
MIN_FEED_PX = 100
#: Items that carry one and the same second are dated by the content system, not by their publication.
SAME_DATE_ITEMS = 4


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One item. `publisher` is the item's <source>, if it has one; `published` are witnesses, published before
    updated."""

    id: str
    url: str
    title: str
    summary: str
    publisher: str
    witnesses: tuple[DateWitness, ...]
    images: tuple[ImageClaim, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """`problem` is empty if the bytes are a feed; a feed may well have no entries."""

    title: str
    entries: tuple[FeedEntry, ...]
    problem: str = ""


def read_feed(
    body: bytes, url: str, *, headers: Mapping[str, str] | None = None, latest: datetime | None = None
) -> Feed:
    """Parse RSS 0.9x/1.0/2.0 or Atom. Never raises for bad bytes: `problem` tells."""
    import feedparser

    if not body.strip():
        return Feed("", (), "an empty answer")
    try:
        parsed = feedparser.parse(_utf8(body, (headers or {}).get("content-type", "")), sanitize_html=False)
    except Exception as error:  # noqa: BLE001 - the parser raises what its parts raise; one feed must not stop others
        return Feed("", (), f"the parser gave up: {type(error).__name__}")
    raw_entries = parsed.get("entries") or []
    if not parsed.get("version") and not raw_entries:
        return Feed("", (), "the answer is not a feed")
    entries = [found for raw in raw_entries if (found := _entry(raw, url, latest)) is not None]
    if not entries and raw_entries:
        return Feed("", (), "no entry has both a title and a link")
    title = _text(parsed.get("feed", {}).get("title", ""))
    return Feed(title, tuple(_doubt_repeated(entries)))


def _utf8(body: bytes, content_type: str) -> bytes:
    """The feed as UTF-8 with a fitting declaration, so that feedparser need not guess."""
    text = decode(body, content_type if "charset" in content_type.lower() else "").lstrip("\ufeff \t\r\n")
    # "]]>" and entities stay as they are; only the declaration would be wrong now
    text = re.sub(r"^<\?xml[^>]*\?>", "", text, count=1)
    return b"<?xml version='1.0' encoding='utf-8'?>" + text.encode("utf-8", errors="ignore")


def _entry(raw: Any, feed_url: str, latest: datetime | None) -> FeedEntry | None:
    title = _text(raw.get("title", ""))
    link = str(raw.get("link") or next((i.get("href", "") for i in raw.get("links", ()) if i.get("href")), ""))
    guid = str(raw.get("id", ""))
    if not link and guid.startswith(("http://", "https://")):
        link = guid
    place = join(feed_url, html.unescape(link) if "&amp;" in link else link)
    if not title or not place:
        return None
    source = raw.get("source") or {}
    return FeedEntry(
        id=guid or place,
        url=place,
        title=title,
        summary=_text(re.sub(r"<[^>]+>", " ", _summary(raw)))[:2000],
        publisher=_text(str(source.get("title", ""))) if isinstance(source, Mapping) else "",
        witnesses=_dates(raw, latest),
        images=_images(raw, place),
        tags=tuple(_text(str(tag.get("term", ""))) for tag in raw.get("tags", ()) if tag.get("term")),
    )


def _summary(raw: Any) -> str:
    """The summary, else the content."""
    content = raw.get("content") or ()
    return str(raw.get("summary") or (content[0].get("value", "") if content else ""))


def _dates(raw: Any, latest: datetime | None) -> tuple[DateWitness, ...]:
    found = []
    # feedparser answers "updated" from "published" by itself; only the keys that are there count
    for key, role in (("published", "published"), ("created", "published"), ("updated", "modified")):
        if key not in raw.keys():  # noqa: SIM118 - the object's own "in" looks further than its keys
            continue
        written = str(dict.get(raw, key) or "")
        read = parse_date(written, latest=latest)
        if read is not None:
            found.append(witness("feed", read, written, role="published" if role == "published" else "modified"))
    if found and found[0].role == "modified":
        # Atom without "published", RSS with dc:date only: feedparser files both under "updated"
        only = found[0]
        found = [only.model_copy(update={"note": "; ".join(p for p in ("only an updated date", only.note) if p)})]
    return tuple(dict.fromkeys(found))


def _doubt_repeated(entries: list[FeedEntry]) -> list[FeedEntry]:
    counts: dict[datetime, int] = {}
    for entry in entries:
        for value in {w.value for w in entry.witnesses if w.precision == "second"}:
            counts[value] = counts.get(value, 0) + 1
    fixed = {value for value, count in counts.items() if count >= SAME_DATE_ITEMS}
    if not fixed:
        return entries

    def doubt(w: DateWitness) -> DateWitness:
        return (
            w.model_copy(update={"credible": False, "note": "the same date on many items"}) if w.value in fixed else w
        )

    return [
        FeedEntry(e.id, e.url, e.title, e.summary, e.publisher, tuple(doubt(w) for w in e.witnesses), e.images, e.tags)
        for e in entries
    ]


def _images(raw: Any, base: str) -> tuple[ImageClaim, ...]:
    """Pictures of an item: media first, then enclosures, then those in the summary; sizes of one picture folded."""
    found: list[ImageClaim] = []
    for item in raw.get("media_content") or ():
        found += _claim(item, "url", base, media=True)
    for item in raw.get("links") or ():
        if item.get("rel") == "enclosure":
            found += _claim(item, "href", base, media=False)
    if not found:
        for item in raw.get("media_thumbnail") or ():
            found += _claim(item, "url", base, media=True)
    if not found:
        content = raw.get("content") or ()
        text = str(raw.get("summary") or "") + " ".join(str(part.get("value", "")) for part in content)
        for tag in re.findall(r"<img\b[^>]*>", text, re.I):
            attributes = dict(re.findall(r"([\w-]+)\s*=\s*[\"']([^\"']*)[\"']", tag))
            found += _claim({**attributes, "medium": "image"}, "src", base, media=True)
    # a caption describes one picture; with several it is not known which
    caption = _described(raw) if len({fold_key(claim.url) for claim in found}) == 1 else ""
    credit = next(
        (str(item.get("content", "")) for item in raw.get("media_credit") or () if isinstance(item, dict)), ""
    )
    best: dict[str, ImageClaim] = {}
    for claim in found:
        key = fold_key(claim.url)
        if key not in best or (claim.width or 0) > (best[key].width or 0):
            best[key] = claim
    return tuple(
        claim.model_copy(update={"caption": caption, "credit": _text(credit)}) if caption or credit else claim
        for claim in best.values()
    )


def _described(raw: Any) -> str:
    """media:description, which feedparser files under the entry's content as plain text."""
    if not (raw.get("media_content") or raw.get("media_thumbnail")):
        return ""
    parts = [part for part in raw.get("content") or () if part.get("type") == "text/plain"]
    text = _text(str(parts[0].get("value", ""))) if parts else ""
    return text if len(text) <= MAX_CAPTION_CHARS else ""


def _claim(item: Mapping[str, Any], key: str, base: str, *, media: bool) -> list[ImageClaim]:
    place = join(base, html.unescape(str(item.get(key) or "")))
    kind, medium = str(item.get("type") or "").lower(), str(item.get("medium") or "").lower()
    path = place.split("?", 1)[0].lower()
    looks = path.endswith(PICTURE_SUFFIX)
    other = medium in ("video", "audio", "document", "executable") or kind.startswith(("audio/", "video/", "text/"))
    if not place or (other and not looks) or medium == "video" or kind.startswith(("audio/", "video/")):
        return []
    if not (looks or medium == "image" or kind.startswith("image/")) or is_never_a_photo(place):
        return []
    width, height = size_in(str(item.get("width") or "")), size_in(str(item.get("height") or ""))
    if (width is not None and width < MIN_FEED_PX) or (height is not None and height < MIN_FEED_PX):
        return []
    return [ImageClaim(url=place, alt=_text(str(item.get("alt") or "")), width=width, height=height, role="feed")]


def _text(value: str) -> str:
    """One line without tags' leftovers and control characters."""
    return " ".join(re.sub("[\x00-\x1f\x7f-\x9f]", " ", html.unescape(value)).split())

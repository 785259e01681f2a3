"""A publisher on loopback for tests of collecting: article pages with known dates, photos made on the spot."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image as PilImage

from engine.core.config import CollectSection
from support.loopback import Reply

TEXT = (
    "The tidal bridge at {place} opened to traffic on Wednesday morning, nine years after the first pile was driven.",
    "Mayor Ilse Brandvik cut the ribbon beside the engineer Tomas Okafor, who had led the works of {place} since {n}.",
    "About {n} thousand people walked across before noon, and the ferry company of {place} said it would end in June.",
    "A choir from {place} sang on the pier while {n} boats waited below, and the harbour master closed the lock.",
)


def photo(seed: int, *, width: int = 480, height: int = 320, fmt: str = "JPEG") -> bytes:
    """A picture with large soft shapes, different for each seed; the same seed gives the same bytes."""
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, size=(6, 8, 3), dtype=np.uint8)
    picture = PilImage.fromarray(small).resize((width, height), PilImage.Resampling.BICUBIC)
    noise = random.integers(-6, 7, size=(height, width, 3))
    pixels = np.clip(np.asarray(picture, dtype=np.int64) + noise, 0, 255).astype(np.uint8)
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, fmt)
    return out.getvalue()


def story(name: str, *, paragraphs: int = 4) -> str:
    """Text of a story; different names give different texts."""
    number = int(hashlib.sha256(name.encode()).hexdigest()[:6], 16)
    words = ["harbour", "granite", "lantern", "orchard", "meadow", "copper", "violin", "glacier", "saddle", "ribbon"]
    said = " ".join(words[(number >> (4 * i)) % 10] for i in range(6))
    parts = [line.format(place=f"{name.title()} {said}", n=number % 97 + i) for i, line in enumerate(TEXT)]
    return "".join(f"<p>{part} {said} {number * (i + 3) % 9973}.</p>" for i, part in enumerate(parts[:paragraphs]))


@dataclass
class Item:
    """One article of the publisher. `date` is ISO with zone, empty for none; `images` are (path, caption) pairs."""

    path: str
    date: str
    title: str = ""
    images: Sequence[tuple[str, str]] = ()
    body: str = ""
    head: str = ""
    feed_date: str | None = None

    @property
    def name(self) -> str:
        return self.path.strip("/").replace("/", " ")


def page(item: Item, *, site: str = "Harbour Post") -> bytes:
    """The article's HTML, dated in JSON-LD."""
    dated = f'<script type="application/ld+json">{{"@type":"NewsArticle","datePublished":"{item.date}"}}</script>'
    meta = f'<meta property="article:published_time" content="{item.date}">'
    figures = "".join(
        f'<figure><img src="{path}" alt=""><figcaption>{caption}</figcaption></figure>' for path, caption in item.images
    )
    title = item.title or f"News of {item.name}"
    return (
        f'<html lang="en"><head><title>{title} - {site}</title><meta property="og:site_name" content="{site}">'
        f"{dated + meta if item.date else ''}{item.head}</head><body><article><h1>{title}</h1>{figures}"
        f"{item.body or story(item.name)}</article></body></html>"
    ).encode()


def rss(host: str, items: Sequence[Item], *, title: str = "Harbour Post") -> bytes:
    entries = "".join(
        f"<item><title>{item.title or f'News of {item.name}'}</title><link>http://{host}{item.path}</link>"
        f"<pubDate>{item.date if item.feed_date is None else item.feed_date}</pubDate></item>"
        for item in items
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>{title}</title>{entries}</channel></rss>'.encode()


@dataclass
class Publisher:
    """Routes of one host: /feed.xml, the articles and their photos."""

    host: str
    items: Sequence[Item]
    photos: Mapping[str, bytes] = field(default_factory=dict)

    def routes(self) -> dict[str, Reply]:
        found = {f"{self.host}/feed.xml": Reply(rss(self.host, self.items), headers={"Content-Type": "text/xml"})}
        for item in self.items:
            found[f"{self.host}{item.path}"] = Reply(page(item), headers={"Content-Type": "text/html; charset=utf-8"})
        for path, data in self.photos.items():
            found[f"{self.host}{path}"] = Reply(data, headers={"Content-Type": "image/jpeg"})
        return found


def collect_config(netloc: str, *hosts: str, **changes: object) -> CollectSection:
    """A config that reaches the made-up hosts at one loopback address."""
    values: dict[str, object] = {
        "resolve": dict.fromkeys(hosts, netloc),
        "allow_hosts": tuple(hosts),
        "per_host_delay_s": 0.0,
        "per_host": 8,
        "timeout_s": 20.0,
        "retries": 0,
        **changes,
    }
    return CollectSection.model_validate(values)

"""Small articles for tests, with captioned pictures that need not exist as files."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from engine.core.schema import Article, ImageRef


def picture(caption: str, *, name: str = "") -> ImageRef:
    """An image record whose digest derives from its caption."""
    sha = hashlib.sha256((name or caption).encode()).hexdigest()
    return ImageRef(
        sha256=sha, ext="jpg", url=f"http://herald.example/{sha[:8]}.jpg", width=640, height=480, caption=caption
    )


def article(
    text: str, *captions: str, title: str = "A story", publisher: str = "The Herald", url: str = "", story: str = ""
) -> Article:
    """An article of 25 November 2026 with one picture per caption; its id derives from its address and text."""
    key = hashlib.sha256(f"{url}|{title}|{text}|{publisher}".encode()).hexdigest()[:16]
    address = url or f"http://{publisher.lower().replace(' ', '-')}.example/{key}"
    return Article(
        id=key,
        url=address,
        canonical_url=address,
        title=title,
        text=text,
        publisher=publisher,
        source=publisher.lower(),
        published_at=datetime(2026, 11, 25, 12, tzinfo=UTC),
        images=tuple(picture(caption) for caption in captions),
        story=story,
    )

"""Records of the collect stage: where a link was seen, what a page says, what its images are."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from engine.core.schema.base import Record, Value

WitnessKind = Literal[
    "jsonld",
    "meta",
    "time",
    "url",
    "sitemap",
    "feed",
    "htmldate",
    "newspaper",
    "api",
    "archive",
    "first_seen",
]
Domain = Literal["Economics", "Technology", "Politics", "Entertainment", "Sports", "Society", "unknown"]


class DateWitness(Value):
    """What one place says of a publication date.

    `value` is an aware UTC instant. `precision` is "day" when the source gave no time (then `value` is
    midnight UTC of that day) and `zone` says whether an offset was written ("stated"), assumed, or none.
    """

    kind: WitnessKind
    value: AwareDatetime
    precision: Literal["second", "day"] = "second"
    role: Literal["published", "modified"] = "published"
    zone: Literal["stated", "assumed", "none"] = "stated"
    raw: str = ""
    credible: bool = True
    note: str = ""


class Link(Record):
    """A URL that a source showed, with what the source said of it.

    `html_sha256` names the page's blob where an archive brought the page along, `content_type` its header.
    """

    url: str
    source: str
    source_type: str
    publisher: str = ""
    title: str = ""
    summary: str = ""
    section: str = ""
    term: str | None = None
    first_seen: AwareDatetime | None = None
    witnesses: tuple[DateWitness, ...] = ()
    images: tuple[ImageClaim, ...] = ()
    html_sha256: str = ""
    content_type: str = ""


class ImageClaim(Value):
    """An image that a page or feed points to, before it is fetched."""

    url: str
    caption: str = ""
    credit: str = ""
    rights: str = ""
    alt: str = ""
    width: int | None = None
    height: int | None = None
    role: Literal["lead", "body", "gallery", "feed", "meta"] = "body"


class ImageRef(Value):
    """An image that was fetched, opened and stored as a blob.

    `width` and `height` are of the upright image (EXIF orientation applied). `phash` is 16 hex digits of
    a 64-bit perceptual hash of the upright RGB image. `sha256` names the blob, i.e. the bytes as fetched.
    """

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    ext: str
    url: str
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    caption: str = ""
    credit: str = ""
    rights: str = ""
    alt: str = ""
    role: Literal["lead", "body", "gallery", "feed", "meta"] = "body"
    phash: str = ""
    archive_material: bool = False


class Article(Record):
    """A news page with text, date and images. `id` derives from the canonical URL."""

    id: str
    url: str
    canonical_url: str
    title: str
    text: str
    language: str = ""
    authors: tuple[str, ...] = ()
    publisher: str = ""
    source: str = ""
    source_type: str = ""
    section: str = ""
    domain: Domain = "unknown"
    term: str | None = None
    published_at: AwareDatetime | None = None
    date_certain: bool = False
    date_precision: Literal["second", "day"] = "second"
    date_witnesses: tuple[DateWitness, ...] = ()
    images: tuple[ImageRef, ...] = ()
    story: str = ""
    html_sha256: str = ""
    notes: tuple[str, ...] = ()

    def day(self) -> str:
        """The UTC day of publication as YYYY-MM-DD, or an empty string."""
        return self.published_at.date().isoformat() if isinstance(self.published_at, datetime) else ""


Link.model_rebuild()

"""The articles of the sample week as they lie in `articles/<site>/<slug>.toml`, and the three sites they stand on.

Nothing is rendered here (see `pages`) and nothing is served (see `server`).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "articles"
IMAGES = Path(__file__).parent / "site" / "images"


@dataclass(frozen=True, slots=True)
class Site:
    """A publisher: where it is, and how its pages and its list of stories look."""

    key: str
    name: str
    host: str
    list_path: str
    list_kind: str

    @property
    def base(self) -> str:
        return f"http://{self.host}"


SITES = {
    site.key: site
    for site in (
        Site("herald", "Harbour Herald", "harbour-herald.example", "/feed.xml", "rss"),
        Site("courier", "Circuit Courier", "circuit-courier.example", "/atom.xml", "atom"),
        Site("voice", "Valley Voice", "valley-voice.example", "/news-sitemap.xml", "sitemap"),
    )
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a story: file below site/images, caption and credit line as printed."""

    file: str
    caption: str = ""
    credit: str = ""
    rights: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """A page. `expect` lists the codes by which the pipeline must refuse it or a part of it; empty means all is well.

    `encoding` is that of the page's bytes. `claimed` is a second, contradicting date in the structured data;
    `locked`, `live`, `gone`, `noai` say what is wrong with the page.
    """

    site: Site
    slug: str
    path: str
    title: str
    summary: str
    section: str
    author: str
    published: datetime | None
    paragraphs: tuple[str, ...]
    pictures: tuple[Picture, ...]
    modified: datetime | None = None
    claimed: datetime | None = None
    locked: bool = False
    live: bool = False
    gone: bool = False
    noai: bool = False
    encoding: str = "utf-8"
    expect: tuple[str, ...] = ()
    note: str = ""

    @property
    def url(self) -> str:
        return f"{self.site.base}{self.path}"


@functools.cache
def stories() -> tuple[Story, ...]:
    """All pages of the three sites, sorted by site and slug."""
    raw = {
        f"{path.parent.name}/{path.stem}": tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*/*.toml"))
    }
    return tuple(_story(name, value, raw) for name, value in raw.items())


def _story(name: str, value: Mapping[str, Any], raw: Mapping[str, Mapping[str, Any]]) -> Story:
    key, slug = name.split("/")
    site = SITES[key]
    published = value.get("published")
    text = value.get("text") or raw[value["same_text_as"]]["text"]
    return Story(
        site=site,
        slug=slug,
        path=value.get("path") or _path(site, slug, value["section"], published),
        title=value["title"],
        summary=value["summary"],
        section=value["section"],
        author=value["author"],
        published=published,
        paragraphs=tuple(" ".join(part.split()) for part in text.strip().split("\n\n")),
        pictures=tuple(Picture(**picture) for picture in value.get("image", ())),
        modified=value.get("modified"),
        claimed=value.get("jsonld_published"),
        locked=value.get("locked", False),
        live=value.get("live", False),
        gone=value.get("gone", False),
        noai=value.get("noai", False),
        encoding=value.get("encoding", "utf-8"),
        expect=tuple(value.get("expect", ())),
        note=value.get("note", ""),
    )


def _path(site: Site, slug: str, section: str, published: datetime | None) -> str:
    if site.key == "herald" and published is not None:
        return f"/{published:%Y/%m/%d}/{slug}.html"
    if site.key == "courier":
        return f"/{section.lower()}/{slug}"
    return f"/{section.lower()}/{slug}/"

"""What a takedown is about: from a person's words to rows, pictures, addresses and names, over all windows.

A picture counts as the same if its bytes or its perceptual hash say so, so a second copy in another week, at another
size or address, is treated alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.core.errors import ConfigError
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import SUPERSEDED
from engine.snapshot.needles import Needles
from engine.snapshot.optout import normal_text, normal_url, url_domains
from engine.snapshot.overlap import NEAR_BITS
from engine.snapshot.purge import SNAPSHOTS
from engine.snapshot.revise import read_rows


@dataclass(frozen=True, slots=True)
class Wish:
    """What someone asks to have removed: ids of rows, addresses of pages or pictures, domains, names of people or
    products, hashes of pictures (sha256 of the published or the fetched file, or a perceptual hash)."""

    ids: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise `ConfigError` for an empty wish or a value that cannot be what it should be."""
        if not any((self.ids, self.urls, self.domains, self.entities, self.images)):
            raise ConfigError("say what to take down: an id, a URL, a domain, an entity or an image hash")
        for value in self.images:
            if not re.fullmatch(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{16}", value):
                raise ConfigError(f"'{value}' is not an image hash: give the sha256 or the 16 digits of image_phashes")
        for value in self.domains:
            if not re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", value.strip()):
                raise ConfigError(f"'{value}' is not a domain: write example.com")
        for value in self.urls:
            if not _address(value):
                raise ConfigError(f"'{value}' is not an address: write https://...")
        for value in self.entities:
            if len(normal_text(value)) < 3:
                raise ConfigError(f"'{value}' is too short a name: it would be found everywhere")


def _address(text: str) -> bool:
    try:
        parts = urlsplit(text.strip() if "://" in text else f"https://{text.strip()}")
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return " " not in text.strip() and ("." in host or host == "localhost")


@dataclass(slots=True)
class Picture:
    """What is known of a picture that goes: every sha256, perceptual hash and address it was met with."""

    digests: set[str] = field(default_factory=set)
    phashes: set[str] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Matches:
    """Rows (per snapshot folder) and pictures that a wish is about, and the needles to purge. `alike` are the rows that
    nothing names: their picture is a copy of one that goes, by its bytes or its perceptual hash."""

    rows: dict[Path, set[str]] = field(default_factory=dict)
    alike: set[str] = field(default_factory=set)
    pictures: Picture = field(default_factory=Picture)
    needles: Needles = field(default_factory=Needles)

    @property
    def ids(self) -> set[str]:
        return set().union(*self.rows.values())


def folders(home: Path) -> list[Path]:
    """All snapshot folders of a home, those put aside included."""
    root = home / SNAPSHOTS
    places = [*root.glob("*"), *(root / SUPERSEDED).glob("*")]
    return sorted(path for path in places if (path / "snapshot.json").is_file())


def match(home: Path, wish: Wish, *, more: tuple[Path, ...] = ()) -> Matches:
    """Look through all snapshots and stages of a home (and snapshot folders in `more`) for what a wish is about."""
    wish.check()
    origins = [(folder, list(_origins(folder))) for folder in (*folders(home), *more)]
    known = [image for _, rows in origins for row in rows for image in row.images]
    known += list(_stage_images(home))
    picture = Picture()
    for value in wish.images:
        (picture.digests if len(value) == 64 else picture.phashes).add(value.lower())
    asked = Needles(names=frozenset(wish.entities), urls=frozenset(wish.urls), domains=frozenset(wish.domains))
    wished_urls = {normal_url(url) for url in wish.urls}
    wished_domains = {domain.strip().lower().removeprefix("www.") for domain in wish.domains}
    for _, rows in origins:
        for row in rows:
            if row.id in wish.ids or asked.in_text(row.text):
                for image in row.images:
                    _take(image, picture)
    for image in known:
        if normal_url(image.url) in wished_urls or wished_domains & set(url_domains(image.url)):
            _take(image, picture)
    for image in _asked_images(home, asked):
        _take(image, picture)
    _grow(picture, known)
    found = Matches(pictures=picture)
    found.needles = Needles(
        names=frozenset(wish.entities),
        urls=frozenset({*wish.urls, *picture.urls}),
        domains=frozenset(wish.domains),
        digests=frozenset(picture.digests),
    )
    for folder, rows in origins:
        gone = {
            row.id
            for row in rows
            if row.id in wish.ids
            or found.needles.in_text(row.text)
            or any(_same(image, picture) for image in row.images)
        }
        if gone:
            found.rows[folder] = gone
            # who names a picture means its copies too
            if not wish.images:
                found.alike |= {
                    row.id for row in rows if row.id in gone - set(wish.ids) and not asked.in_text(row.text)
                }
    return found


# ---------------------------------------------------------------- what is known of rows and pictures


@dataclass(frozen=True, slots=True)
class _Image:
    digests: tuple[str, ...]
    phash: str
    url: str


@dataclass(frozen=True, slots=True)
class _Origin:
    id: str
    images: tuple[_Image, ...]
    text: str


def _origins(folder: Path) -> Iterator[_Origin]:
    read_manifest(folder)
    for row in read_rows(folder):
        told = row.provenance
        columns = zip(
            told["image_sha256"], told["image_published_sha256"], told["image_phashes"], told["image_urls"], strict=True
        )
        images = tuple(_Image((fetched, published), phash, url) for fetched, published, phash, url in columns)
        words = {name: value for name, value in row.default.items() if isinstance(value, str)}
        yield _Origin(row.id, images, json.dumps([words, told], ensure_ascii=False, default=str))


def _stage_images(home: Path) -> Iterator[_Image]:
    """Every picture that a stage's records mention."""
    for path in sorted((home / "windows").rglob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if '"phash"' in line:
                    yield from _images_in(_json(line))


def _asked_images(home: Path, asked: Needles) -> Iterator[_Image]:
    """Pictures of articles and questions in stages that mention a name, a page or a domain of the wish."""
    if not asked:
        return
    digests: set[str] = set()
    found: dict[str, _Image] = {}
    for path in sorted((home / "windows").rglob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                raw = _json(line)
                for image in _images_in(raw):
                    found[image.digests[0]] = image
                if not isinstance(raw, dict) or not asked.in_text(line):
                    continue
                if "answer" in raw:  # a question about it: the pictures show it
                    digests.update(str(value) for value in raw.get("images", ()))
                elif "canonical_url" in raw and not asked.names:  # a page of that address or domain
                    digests.update(image.digests[0] for image in _images_in(raw))
                elif "canonical_url" in raw:
                    captions = ((image, str(item)) for item in raw.get("images", ()) for image in _images_in(item))
                    digests.update(image.digests[0] for image, text in captions if asked.in_text(text))
    for digest in sorted(digests & found.keys()):
        yield found[digest]


def _images_in(value: Any) -> Iterator[_Image]:
    if isinstance(value, dict):
        if "sha256" in value and "phash" in value:
            yield _Image((str(value["sha256"]),), str(value["phash"]), str(value.get("url", "")))
        for inner in value.values():
            yield from _images_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _images_in(inner)


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _take(image: _Image, picture: Picture) -> None:
    picture.digests.update(image.digests)
    if image.phash:
        picture.phashes.add(image.phash)
    if image.url:
        picture.urls.add(image.url)


def _same(image: _Image, picture: Picture) -> bool:
    if picture.digests.intersection(image.digests):
        return True
    if not image.phash:
        return False
    ours = int(image.phash, 16)
    return any((ours ^ int(other, 16)).bit_count() <= NEAR_BITS for other in picture.phashes)


def _grow(picture: Picture, known: list[_Image]) -> None:
    """Add every copy of the pictures. Only the first hashes spread, not those of the copies: likeness is no chain."""
    seed = Picture(set(picture.digests), set(picture.phashes), set())
    for image in known:
        if _same(image, seed):
            picture.digests.update(image.digests)
            if image.url:
                picture.urls.add(image.url)

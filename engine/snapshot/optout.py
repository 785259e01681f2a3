"""The opt-out list of a home: what later builds never publish again.

It is a JSON Lines file `optout.jsonl` in the home directory. Entries are digests wherever a digest will do, so
that the list itself does not spread what was to disappear: ids of rows stand as they are, image hashes too,
URLs, domains and names are kept as sha256 of their normalised form.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from engine.core.errors import TerminalError
from engine.core.schema import Code, Record, Sample
from engine.core.store import write_atomic

FILE = "optout.jsonl"
Kind = Literal["id", "url", "domain", "entity", "image", "phash"]


class OptOutEntry(Record):
    """One line: the kind, and an id, an image's sha256, a perceptual hash, or the sha256 of the normalised text."""

    kind: Kind
    value: str


def normal_text(text: str) -> str:
    """A name for comparison: compatibility form, no accents, casefolded, single spaces."""
    plain = unicodedata.normalize("NFKD", text)
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(kept.casefold().split())


def normal_url(url: str) -> str:
    """A URL for comparison: no scheme, no `www.`, lower-case host, no fragment, no trailing slash. What is no URL at
    all (pages hold such) is compared as it is."""
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").removeprefix("www.")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url.strip().casefold()
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{port}{parts.path.rstrip('/')}{query}"


def url_domains(url: str) -> list[str]:
    """The host of a URL and every domain above it: news.example.com, example.com, com."""
    try:
        labels = (urlsplit(url.strip()).hostname or "").split(".")
    except ValueError:
        return []
    return [".".join(labels[start:]) for start in range(len(labels)) if labels[start]]


def entry(kind: Kind, value: str) -> OptOutEntry:
    """An entry of the list from what a person writes."""
    if kind in ("id", "image", "phash"):
        return OptOutEntry(kind=kind, value=value.strip().lower())
    if kind == "url":
        return OptOutEntry(kind=kind, value=_digest(normal_url(value)))
    if kind == "domain":
        return OptOutEntry(kind=kind, value=_digest(value.strip().lower().removeprefix("www.").strip(".")))
    return OptOutEntry(kind=kind, value=_digest(normal_text(value)))


@dataclass(frozen=True, slots=True)
class OptOut:
    """The list in memory."""

    entries: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    near_bits: int = 6

    @classmethod
    def of(cls, entries: Iterable[OptOutEntry], *, names: Iterable[str] = ()) -> OptOut:
        """From entries and, beside them, plain names (the config's `opt_out`)."""
        told = {(item.kind, item.value) for item in entries}
        told |= {("entity", entry("entity", name).value) for name in names}
        return cls(frozenset(told))

    def refuses(self, sample: Sample) -> Code | None:
        """`TAKEN_DOWN` or `OPTED_OUT` for a sample that must not be published, else None."""
        if ("id", sample.id) in self.entries:
            return Code.TAKEN_DOWN
        question, article = sample.question, sample.article
        names = [question.answer, *question.aliases, *(entity.name for entity in question.entities)]
        urls = [article.url, article.canonical_url, *(image.url for image in sample.images)]
        told = [entry("entity", name) for name in names]
        told += [entry("url", url) for url in urls if url]
        told += [entry("domain", domain) for url in urls for domain in url_domains(url)]
        told += [entry("image", image.sha256) for image in sample.images]
        if any((item.kind, item.value) in self.entries for item in told):
            return Code.OPTED_OUT
        hashes = [int(value, 16) for kind, value in self.entries if kind == "phash"]
        for image in sample.images:
            if image.phash and any((int(image.phash, 16) ^ known).bit_count() <= self.near_bits for known in hashes):
                return Code.OPTED_OUT
        return None


def read_optout(home: Path, *, names: Iterable[str] = ()) -> OptOut:
    """The list of a home directory; an absent file is an empty list. Raises `TerminalError` for a broken one."""
    return OptOut.of(_read(home / FILE), names=names)


def add_optout(home: Path, entries: Iterable[OptOutEntry]) -> None:
    """Add entries to the list of a home directory, sorted and without repeats."""
    lines = {item.line() for item in _read(home / FILE)} | {item.line() for item in entries}
    write_atomic(home / FILE, "".join(line + "\n" for line in sorted(lines)).encode())


def _read(path: Path) -> list[OptOutEntry]:
    if not path.is_file():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [OptOutEntry.read(json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        # a broken list must stop a build: without it a removed person would come back
        raise TerminalError(f"the opt-out list {path} cannot be read ({error}): mend it before building") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

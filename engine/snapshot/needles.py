"""Finding what must disappear in any file: names, addresses, domains and hashes, in the forms files write them in.

Text is compared without accents, case, HTML and JSON escapes and percent signs; raw bytes are searched as well, for
names inside the metadata of pictures. A name is found as whole words only, so that "Li" does not empty a home.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from engine.snapshot.optout import normal_text, normal_url

_JSON_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
#: An address ends where its path ends: the picture 1/2.jpg is not the article 1.
_PATH_GOES_ON = rb"(?![\w/%.-]*[\w%-])"
#: Files larger than this are searched as bytes only.
TEXT_LIMIT = 20_000_000


@dataclass(frozen=True)
class Needles:
    """What to look for. `names` as people write them, `urls` in full, `domains` as host names, `digests` as sha256
    of pictures (64 hex digits)."""

    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.names or self.urls or self.domains or self.digests)

    @cached_property
    def _text(self) -> re.Pattern[str] | None:
        parts = [rf"(?<!\w){re.escape(normal_text(name))}(?!\w)" for name in sorted(self.names) if normal_text(name)]
        parts += [rf"(?<![\w.-])(?:www\.)?{re.escape(found)}{_PATH_GOES_ON.decode()}" for found in self._urls()]
        parts += [rf"(?<![\w-]){re.escape(domain)}(?![\w-]|\.\w)" for domain in self._domains()]
        parts += [re.escape(digest) for digest in sorted(self.digests)]
        return re.compile("|".join(parts)) if parts else None

    @cached_property
    def _raw(self) -> re.Pattern[bytes] | None:
        parts = []
        for name in sorted(self.names):
            parts += [_between_words(form) for form in _encodings(name)]
        parts += [rb"(?<![\w.-])(?:www\.)?" + re.escape(found.encode()) + _PATH_GOES_ON for found in self._urls()]
        parts += [rb"(?<![\w-])" + re.escape(found.encode()) + rb"(?![\w-]|\.\w)" for found in self._domains()]
        parts += [digest.encode() for digest in sorted(self.digests)]
        return re.compile(b"|".join(parts), re.IGNORECASE) if parts else None

    def _urls(self) -> list[str]:
        return sorted({normal_text(normal_url(url)) for url in self.urls if normal_url(url)})

    def _domains(self) -> list[str]:
        return sorted({domain.strip().lower().removeprefix("www.").strip(".") for domain in self.domains})

    def in_text(self, text: str) -> bool:
        """Whether a text holds one of them, whatever its escapes."""
        return self._text is not None and self._text.search(plain(text)) is not None

    def in_bytes(self, data: bytes) -> bool:
        """Whether a file's bytes hold one of them, or are one of the pictures."""
        if not self:
            return False
        if hashlib.sha256(data).hexdigest() in self.digests:
            return True
        if self._raw is not None and self._raw.search(data):
            return True
        if len(data) > TEXT_LIMIT:
            return False
        head, _, body = data.partition(b"\n")
        # a cached answer: one line that describes it, then the body as it came
        if body and hashlib.sha256(body).hexdigest() in self.digests:
            return True
        if b"\0" in data[:4096]:
            return self.in_text(head.decode("utf-8", "replace")) if b"\0" not in head else False
        return self.in_text(data.decode("utf-8", "replace")) or self.in_text(data.decode("cp1252", "replace"))


def plain(text: str) -> str:
    """A text without JSON, HTML and percent escapes, accents and case."""
    found = text.replace("\\/", "/")
    if "\\u" in found:
        found = _JSON_ESCAPE.sub(lambda match: chr(int(match[1], 16)), found)
    if "&" in found:
        found = html.unescape(found)
    if "%" in found:
        found = unquote(found, errors="replace")
    return normal_text(found)


def merged(parts: Iterable[Needles]) -> Needles:
    """All needles of several."""
    found = list(parts)
    return Needles(
        names=frozenset().union(*(item.names for item in found)),
        urls=frozenset().union(*(item.urls for item in found)),
        domains=frozenset().union(*(item.domains for item in found)),
        digests=frozenset().union(*(item.digests for item in found)),
    )


def _encodings(text: str) -> list[bytes]:
    forms = {text.encode()}
    for encoding in ("latin-1", "utf-16-le", "utf-16-be"):
        try:
            forms.add(text.encode(encoding))
        except UnicodeEncodeError:
            continue
    return sorted(forms)


def _between_words(form: bytes) -> bytes:
    return rb"(?<![A-Za-z0-9])" + re.escape(form) + rb"(?![A-Za-z0-9])"

"""Levelling of text before it is compared: what a reader would call the same is the same, and nothing else.

No fuzzy matching anywhere: quotes, dashes, spaces, Unicode forms, case and (where said) accents are levelled, letters
and their order are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_QUOTES = dict.fromkeys(map(ord, "‘’‚‛′`´ʼ"), "'") | dict.fromkeys(map(ord, "“”„‟″«»‹›"), '"')
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-")
_DROPPED = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), None)
_TABLE: dict[int, str | None] = {**_QUOTES, **_DASHES, **_DROPPED}
#: Letters that decomposition leaves alone, as news desks write them in plain letters.
_LETTERS = str.maketrans(
    {"ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h", "ŋ": "n"}
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sen|Rep|Gov|Gen|Col|Lt|Maj|Sgt|Capt|Cmdr|Adm|Rev|Hon|St|Jr|Sr|Inc|Corp|Ltd|Co|No|vs|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|e\.g|i\.e|a\.m|p\.m)|\b(?:[A-Z]\.)*[A-Z])\.$"
)
_STOP = re.compile(r"[.!?]+[\"')\]”’]*(?=\s+[\"'(\[“‘]*[A-Z0-9À-Þ])|\n\s*")


def level(text: str) -> str:
    """Same letters, levelled form: NFKC, plain quotes and dashes, single spaces; case and accents stay."""
    if text.isascii():
        return " ".join(text.replace("`", "'").split())
    plain = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return " ".join(plain.split())


def fold(text: str) -> str:
    """Levelled, without case and accents: "Gül’s" and "GUL'S" are the same."""
    return _fold_short(text) if len(text) <= _SHORT else _fold_long(text)


def _fold(text: str) -> str:
    if text.isascii():
        return level(text).lower()
    parts = unicodedata.normalize("NFKD", level(text).casefold().translate(_LETTERS))
    bare = "".join(letter for letter in parts if not unicodedata.combining(letter))
    # taking marks off may leave a blank, a dash or a capital of another alphabet
    return level(bare).casefold()


#: Names and sentences are folded often, whole texts a few times in a row: two caches, so that memory stays flat.
_SHORT = 400
_fold_short = lru_cache(maxsize=4096)(_fold)
_fold_long = lru_cache(maxsize=32)(_fold)


@lru_cache(maxsize=4096)
def spellings(word: str) -> tuple[str, ...]:
    """The folded form of a word and, for umlauts and the like, its transliteration (Müller: muller, mueller)."""
    return tuple(sorted({fold(word), fold(level(word).casefold().translate(_UMLAUTS))}))


def words(text: str) -> list[str]:
    """Folded words: letters and digits, inner apostrophes and hyphens kept, a possessive 's cut off."""
    found = re.findall(r"[^\W_]+(?:['\-&.][^\W_]+)*", fold(text))
    return [re.sub(r"'s$", "", word) for word in found]


def atoms(text: str) -> list[str]:
    """Folded words split at hyphens, dots and apostrophes as well."""
    return [part for word in words(text) for part in re.split(r"['\-&.]", word) if part]


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the folded phrase stands in the text as whole words (a possessive may follow)."""
    return next(places(fold(text), fold(phrase)), None) is not None


def places(folded: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Where a folded phrase stands in a folded text as whole words: start and end of each place."""
    start = folded.find(phrase) if phrase else -1
    while start >= 0:
        end = start + len(phrase)
        if not (start and folded[start - 1].isalnum()) and not folded[end : end + 1].isalnum():
            yield start, end
        start = folded.find(phrase, start + 1)


def sentences(text: str) -> list[str]:
    """Sentences of a text, verbatim, in order. Abbreviations, initials and decimal points end none."""
    found: list[str] = []
    start = 0
    for match in _STOP.finditer(text):
        head = text[start : match.end()].rstrip("\"')]”’ \n")
        if not match[0].startswith("\n") and match[0][0] == "." and _ABBREVIATION.search(head):
            continue
        if text[start : match.end()].strip():
            found.append(text[start : match.end()].strip())
        start = match.end()
    if text[start:].strip():
        found.append(text[start:].strip())
    return found

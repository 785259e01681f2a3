"""Runs of name words in a caption, with the titles before them; full names and product nouns out of the text.

Patterns only, English. What a run means (someone pictured, a place, a product) is decided in `captions`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.questions.lexicon import OPENERS, PARTICLES, PRODUCT_PHRASES, ROLE_TITLES, TITLES
from engine.questions.text import level

_TOKEN = re.compile(r"[^\W_](?:[\w]|['’\-&.](?=[^\W_]))*\.?|[^\w\s]")
#: Who made the picture: agencies and photographers at a caption's end, or the whole of a credit line.
_CREDIT = re.compile(
    r"""\s*(?:
      \((?:[^()]*\b(?:photo|image|picture|handout|via|getty|reuters|afp|ap)\b[^()]*|[A-Z][\w.]*/[^()]*)\)\s*$
    | (?:^|(?<=[.!?)\]"'])|(?<=[.!?)\]"'][ ]))
      (?:photograph|photo|picture|image|credit|illustration|file[ ]photo)s?(?:[ ]by\b|[ ]credit\b|:).*$
    | \b(?:REUTERS|AFP|AP|EPA|PA|GETTY[ ]IMAGES)\s*(?:/|\||-|via\b).*$
    | \s\|\s.*$
    | ©.*$
    )""",
    re.X | re.I,
)
_NOUN_AFTER = re.compile(r"(?:\s*,\s*(?:an?|the|its)\s+|\s+is\s+an?\s+|\s+)((?:[\w-]+\s?){1,6})")
_NOUN_BEFORE = re.compile(r"([\w-]+)\s*,?\s+(?:the\s+|called\s+(?:the\s+)?|named\s+(?:the\s+)?)?$")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of name words, with what stands before it and the span of the bare name."""

    name: str
    start: int
    end: int
    titles: tuple[str, ...]
    before: str
    after: str
    opens: bool


def without_credit(plain: str) -> str:
    """A levelled caption without the credit at its end: photographers are not in their pictures."""
    bare = _CREDIT.sub("", plain)
    return bare if bare == plain else without_credit(bare)


def find_runs(plain: str) -> list[Run]:
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(plain)]
    runs: list[Run] = []
    index = 0
    while index < len(tokens):
        if re.search(r"['’]s$", tokens[index][0]) and _is_name_word(tokens[index][0]):
            runs += _cut(tokens[index : index + 1], plain)
            index += 1
            continue
        if not _is_name_word(tokens[index][0]):
            index += 1
            continue
        stop = index + 1
        while stop < len(tokens) and plain[tokens[stop - 1][2] : tokens[stop][1]] == " ":
            word = tokens[stop][0]
            particle = word in PARTICLES and any(_is_name_word(token[0]) for token in tokens[stop + 1 : stop + 3])
            if not (_is_name_word(word) or particle or word[0].isdigit()):
                break
            stop += 1
            if re.search(r"['’]s$", word):
                break
        runs += _cut(tokens[index:stop], plain)
        index = stop
    return runs


def _cut(tokens: list[tuple[str, int, int]], plain: str) -> list[Run]:
    opens = tokens[0][1] == 0 or plain[: tokens[0][1]].rstrip()[-1:] in ".:!?"
    titles: list[str] = []
    while tokens and tokens[0][0].lower().rstrip(".") in OPENERS | TITLES:
        word = tokens.pop(0)[0]
        if word.lower().rstrip(".") in TITLES and word.lower() not in OPENERS:
            titles.append(word)
    strong = [place for place, token in enumerate(tokens[:-1]) if token[0].lower() in ROLE_TITLES]
    if strong:  # "Apple CEO Tim Cook", "Sri Lankan President Anura Dissanayake"
        titles += [token[0] for token in tokens[: strong[-1] + 1]]
        tokens = tokens[strong[-1] + 1 :]
    if not tokens:
        return []
    # a possessive ends a name: what follows is someone's thing
    text = plain[tokens[0][1] : tokens[-1][2]]
    bare = re.sub(r"['’]s$", "", text)
    if bare.endswith(".") and not re.search(r"\b(?:Jr|Sr)\.$", bare):
        bare = bare[:-1]
    start, end = tokens[0][1], tokens[0][1] + len(bare)
    before = re.sub(r"\s+$", "", plain[:start])
    for title in reversed(titles):
        before = re.sub(rf"\s*{re.escape(title)}$", "", before)
    return [Run(bare, start, end, tuple(titles), before, plain[end:], opens and not titles)]


def _is_name_word(word: str) -> bool:
    if re.fullmatch(r"(?:i|e)[A-Z]\w+", word):
        return True
    return word[0].isupper() and word[0].isalpha()


def product_phrase(name: str, text: str) -> str:
    """The phrase for a product that the text calls by a noun: "the Lumo X2 phone", "the Lumo X2, a folding phone"."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if not text[end : end + 1].isalnum() and (match := _NOUN_AFTER.match(text[end : end + 80])):
            for word in match[1].lower().split():
                if word in PRODUCT_PHRASES:
                    return PRODUCT_PHRASES[word]
        match = _NOUN_BEFORE.search(text[max(0, start - 60) : start])
        if match and match[1].lower() in PRODUCT_PHRASES:
            return PRODUCT_PHRASES[match[1].lower()]
        start = text.find(name, end)
    return ""


def full_name(surname: str, text: str) -> str:
    """The one full name that the text gives for a surname, or an empty string if there is none or several."""
    given = r"[A-ZÀ-Þ][\w'’.-]*"
    seen: set[str] = set()
    for match in re.finditer(rf"\b(?:{given}\s+){{1,3}}{re.escape(surname)}\b", text):
        parts = level(match[0]).split()
        while parts and parts[0].lower().rstrip(".") in TITLES | OPENERS:
            parts.pop(0)
        if len(parts) > 1:
            seen.add(" ".join(parts))
    shortest = {name for name in seen if not any(name != other and name.endswith(other) for other in seen)}
    return shortest.pop() if len(shortest) == 1 else ""

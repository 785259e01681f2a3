"""Who and what a caption says is in the picture, and where: patterns of English news captions, no model.

"Eileen Collins, left, and Grace Hopper at ..."; "From left: A, B and C ..."; "The Lumo X2 phone beside a cup". Names of
places, organisations and people who are only mentioned are left out: a lost name costs a question, a wrong one a wrong
question. The article's text helps where the caption is short ("Mayor Brandvik", "the X2").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.core.schema import Entity
from engine.questions.lexicon import (
    DESCRIBING,
    NOT_A_PERSON,
    OPENERS,
    PARTICLES,
    PLACE_PREPOSITIONS,
    PRODUCT_PHRASES,
    TITLES,
)
from engine.questions.text import level

_TOKEN = re.compile(r"[^\W_](?:[\w]|['’\-&.](?=[^\W_]))*\.?|[^\w\s]")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SIDE = r"(?:far |extreme |upper |lower |top |bottom |front |back |rear )?(?:left|right|cent(?:re|er)|middle)"
_PLACE = (
    rf"(?:(?:{'|'.join(_ORDINALS)}|\d(?:st|nd|rd|th)) (?:from|on) (?:the )?(?:left|right)"
    rf"|(?:at |on |to |in )?(?:the )?{_SIDE}(?: of (?:the )?(?:picture|photo|image))?"
    rf"|(?:in )?(?:the )?(?:foreground|background|front|back)"
    rf"|(?:wearing|dressed in|in) (?:an? |the )?(?:[a-z]+ ){{0,2}}[a-z]+"
    rf"|(?:holding|carrying|with) (?:an? |the |his |her )(?:[a-z]+ ){{0,2}}[a-z]+"
    rf"|seated|sitting|standing|kneeling)"
)
_AFTER = re.compile(rf"\s*(?:,\s*(?P<comma>{_PLACE})\s*(?=[,.;:]|$|\band\b)|\((?P<bracket>{_PLACE}|[LCR])\))", re.I)
_APPOSITION = re.compile(r"\s*,\s*(?:(?:an?|the|his|her|its)\s+)?(?:[a-z][\w'’-]*\s*){1,6}(?=,)")
_BEFORE = re.compile(rf"(?:^|[.;,]\s*|\b(?:and|while)\s+)(?P<place>{_PLACE})\s*[,:]\s*$", re.I)
_LIST = re.compile(
    r"(?:^|[.;,(]\s*)(?:pictured\s+|seen\s+|shown\s+)?(?:from\s+(?:the\s+)?left(?:\s+to\s+right)?|left\s+to\s+right|"
    r"l(?:eft)?\s*-\s*r(?:ight)?|from\s+l(?:eft)?\s+to\s+r(?:ight)?)\s*\)?\s*[,:;]?\s*$",
    re.I,
)
_ALLOWED_BY = re.compile(r"\b(?:accompanied|followed|joined|flanked|watched|greeted|helped|held|led) by\s*$", re.I)
_NOUN_AFTER = re.compile(r"(?:\s*,\s*(?:an?|the|its)\s+|\s+is\s+an?\s+|\s+)((?:[\w-]+\s?){1,6})")
_NOUN_BEFORE = re.compile(r"([\w-]+)\s*,?\s+(?:the\s+|called\s+(?:the\s+)?|named\s+(?:the\s+)?)?$")
_LETTER = {"l": "left", "c": "centre", "r": "right"}


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of name words, with what stands before it and the span of the bare name."""

    name: str
    start: int
    end: int
    titles: tuple[str, ...]
    before: str
    after: str
    opens: bool


def read_caption(caption: str, *, text: str = "") -> tuple[Entity, ...]:
    """Named persons and products of a caption in the order of their names. `text` is the article's, for help."""
    plain = level(caption)
    listing = _listing(plain)
    found: list[Entity] = []
    for run in _runs(plain):
        entity = _product(run, plain, text) or _person(run, plain, text, listed=_in_list(run, listing))
        if entity is None or any(entity.name == other.name for other in found):
            continue
        found.append(replace_order(entity, len(found), _position(run, plain)))
    return _number_list(found, plain, listing)


def replace_order(entity: Entity, order: int, position: str) -> Entity:
    """The entity with its place in the caption."""
    return entity.model_copy(update={"order": order, "position": position})


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


# ---------------------------------------------------------------- names


def _runs(plain: str) -> list[_Run]:
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(plain)]
    runs: list[_Run] = []
    index = 0
    while index < len(tokens):
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


def _cut(tokens: list[tuple[str, int, int]], plain: str) -> list[_Run]:
    opens = tokens[0][1] == 0 or plain[: tokens[0][1]].rstrip()[-1:] in ".:!?"
    titles: list[str] = []
    while tokens and tokens[0][0].lower().rstrip(".") in OPENERS | TITLES:
        word = tokens.pop(0)[0]
        if word.lower().rstrip(".") in TITLES and word.lower() not in OPENERS:
            titles.append(word)
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
    return [_Run(bare, start, end, tuple(titles), before, plain[end:], opens and not titles)]


def _is_name_word(word: str) -> bool:
    if re.fullmatch(r"(?:i|e)[A-Z]\w+", word):
        return True
    return word[0].isupper() and word[0].isalpha()


def _last_words(text: str, count: int) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())[-count:]


# ---------------------------------------------------------------- persons and products


def _product(run: _Run, plain: str, text: str) -> Entity | None:
    after = re.findall(r"^\s+([\w-]+)(?:\s+([\w-]+))?(?:\s+([\w-]+))?", run.after)
    following = [word.lower() for word in after[0] if word] if after else []
    parts = run.name.split()
    if run.titles or re.match(r"['’]s\b", run.after):
        return None
    phrase = ""
    for word in following:  # "robot vacuum": the last noun says what it is
        if word in PRODUCT_PHRASES:
            phrase = PRODUCT_PHRASES[word]
        elif phrase or word not in DESCRIBING:
            break
    before = _last_words(run.before, 1)
    if not phrase and before and before[0] in PRODUCT_PHRASES:
        phrase = PRODUCT_PHRASES[before[0]]
    if not phrase and len(parts) > 1 and parts[-1].lower() in PRODUCT_PHRASES:
        phrase = PRODUCT_PHRASES[parts[-1].lower()]
    if not phrase and (before in (["the"], ["a"], ["an"], ["new"], ["its"]) or any(map(str.isdigit, run.name)) or text):
        phrase = product_phrase(run.name, text)
    if not phrase or (before and before[0] in ("by",)):
        return None
    return Entity(name=run.name, type="product", phrase=phrase)


def _person(run: _Run, plain: str, text: str, *, listed: bool) -> Entity | None:
    name = run.name
    parts = name.split()
    before = _last_words(run.before, 1)
    lowered = {part.lower().strip(".") for part in parts}
    if re.match(r"['’]s\b", run.after):
        return None  # "Grace Hopper's laptop" shows a laptop
    if any(map(str.isdigit, name)) or lowered & NOT_A_PERSON or any(part.isupper() and len(part) > 3 for part in parts):
        return None
    if re.match(r"\s+(?:" + "|".join(sorted(NOT_A_PERSON)) + r")\b", run.after):
        return None
    if not listed and not run.titles and before and not run.before.endswith((",", ":", ";", ")", ".")):
        if before[0] in {"the", "a", "an", "this", "its"}:
            return None
        if before[0] in PLACE_PREPOSITIONS or (before[0] == "by" and not _ALLOWED_BY.search(run.before)):
            return None
    if len(parts) == 1:
        if not (run.titles or listed or _AFTER.match(run.after)):
            return None
        name = full_name(name, text)
        if not name:
            return None
    if run.opens and len(parts) > 1 and re.match(r",\s+[A-Z]\w+(?:,|\s*[-–(]|\s*$)", run.after) and not listed:
        return None  # a dateline: "Cape Canaveral, Florida"
    return Entity(name=name, type="person", phrase="person")


# ---------------------------------------------------------------- places


def _position(run: _Run, plain: str) -> str:
    rest = run.after
    for _ in range(3):  # "the Vento watch (right)": the noun belongs to the name
        if noun := re.match(r"\s+([\w-]+)", rest):
            if noun[1].lower() not in PRODUCT_PHRASES and noun[1].lower() not in DESCRIBING:
                break
            rest = rest[noun.end() :]
    match = _AFTER.match(rest)
    if match is None and (skipped := _APPOSITION.match(rest)):
        match = _AFTER.match(rest[skipped.end() :])
    if match:
        told = (match["comma"] or match["bracket"]).lower()
        return _LETTER.get(told, _bare_place(told))
    if before := _BEFORE.search(re.sub(r"\s+(?:the|an?|its|new)$", "", run.before, flags=re.I)):
        return _bare_place(before["place"].lower())
    return ""


def _bare_place(told: str) -> str:
    """The caption's own words without what carries nothing: "on the far left of the picture" is "far left"."""
    bare = re.sub(r" of (?:the )?(?:picture|photo|image)$", "", told)
    bare = re.sub(rf"^(?:at |on |to |in )?(?:the )?(?={_SIDE}$)", "", bare)
    return re.sub(r"^in (?:the )?(?=(?:foreground|background|front|back)$)", "", bare)


def _listing(plain: str) -> int | None:
    """Where a list from left to right begins, if the caption has one."""
    for match in re.finditer(r"[,:;)]|\bleft\b|\bright\b|\br\b", plain, re.I):
        if _LIST.search(plain[: match.end()]):
            follow = re.match(r"\s*[,:;)]?\s*", plain[match.end() :])
            end = match.end() + (follow.end() if follow else 0)
            article = re.match(r"(?:the|an?)\s+(?=[A-Z])", plain[end:])
            end += article.end() if article else 0
            if end < len(plain) and plain[end].isupper():
                return end
    return None


def _in_list(run: _Run, listing: int | None) -> bool:
    if listing is None or run.start < listing or set(_last_words(run.before, 1)) & PLACE_PREPOSITIONS - {"left"}:
        return listing is not None and run.start == listing
    return _same_sentence(run.before[listing:])


def _same_sentence(between: str) -> bool:
    return not re.search(r"[.;]\s|\b(?:at|in|on|during|near|outside|after|before)\s+[A-Z]", between)


def _number_list(found: list[Entity], plain: str, listing: int | None) -> tuple[Entity, ...]:
    if listing is None:
        return tuple(found)
    places = [(plain.find(entity.name.split()[-1], listing), entity) for entity in found]
    listed = [entity for place, entity in places if place >= 0 and _same_sentence(plain[listing:place])]
    if len(listed) < 2:
        return tuple(found)
    numbered: dict[str, str] = {}
    for index, entity in enumerate(listed):
        if index == 0:
            numbered[entity.name] = "left"
        elif index == len(listed) - 1:
            numbered[entity.name] = "right"
        else:
            numbered[entity.name] = f"{_ORDINALS[index]} from left" if index < len(_ORDINALS) else ""
    return tuple(replace_order(entity, entity.order, numbered.get(entity.name, entity.position)) for entity in found)

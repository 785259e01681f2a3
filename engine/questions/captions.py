"""Who and what a caption says is in the picture, and where: patterns of English news captions, no model.

"Eileen Collins, left, and Grace Hopper at ..."; "From left: A, B and C ..."; "The Lumo X2 phone beside a cup". Names of
places, organisations and people who are only mentioned are left out: a lost name costs a question, a wrong one a wrong
question. The article's text helps where the caption is short ("Mayor Brandvik", "the X2").
"""

from __future__ import annotations

import re

from engine.core.schema import Entity
from engine.questions.lexicon import (
    DESCRIBING,
    NOT_A_PERSON,
    PLACE_PREPOSITIONS,
    PRODUCT_PHRASES,
    SINGLE_NAME_TITLES,
)
from engine.questions.names import Run, find_runs, full_name, product_phrase, without_credit
from engine.questions.text import level

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
#: Prepositions that lead to a person as well as to a place.
_TOWARDS = frozenset(("to", "from", "around", "over"))
_LETTER = {"l": "left", "c": "centre", "r": "right"}


def read_caption(caption: str, *, text: str = "") -> tuple[Entity, ...]:
    """Named persons and products of a caption in the order of their names. `text` is the article's, for help."""
    plain = without_credit(level(caption))
    listing = _listing(plain)
    found: list[Entity] = []
    for run in find_runs(plain):
        entity = _product(run, plain, text) or _person(run, plain, text, listed=_in_list(run, listing))
        if entity is None or any(entity.name == other.name for other in found):
            continue
        found.append(replace_order(entity, len(found), _position(run, plain)))
    return _number_list(found, plain, listing)


def may_be_pictured(name: str, caption: str) -> bool:
    """Whether nothing around a person's name says that they are not in the picture: a thing of theirs, a place or a
    prize that is called after them, who took the picture."""
    plain = without_credit(level(caption))
    match = re.search(rf"(?<![\w-]){re.escape(level(name))}(?![\w-])", plain)
    if match is None or re.match(r"['’]s\b|['’](?=\s)", plain[match.end() :]):
        return False
    if re.match(r"\s+(?:" + "|".join(sorted(NOT_A_PERSON)) + r")\b", plain[match.end() :], re.I):
        return False
    before = _last_words(plain[: match.start()], 1)
    return not before or before[0] not in PLACE_PREPOSITIONS | {"the", "a", "an", "by", "of"}


def replace_order(entity: Entity, order: int, position: str) -> Entity:
    """The entity with its place in the caption."""
    return entity.model_copy(update={"order": order, "position": position})


def _last_words(text: str, count: int) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())[-count:]


# ---------------------------------------------------------------- persons and products


def _product(run: Run, plain: str, text: str) -> Entity | None:
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


def _person(run: Run, plain: str, text: str, *, listed: bool) -> Entity | None:
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
        # "hands a medal to Ilse Brandvik, left": whose place is told is in the picture
        placed = len(parts) > 1 and before[0] in _TOWARDS and _AFTER.match(run.after) is not None
        if (before[0] in PLACE_PREPOSITIONS and not placed) or (
            before[0] == "by" and not _ALLOWED_BY.search(run.before)
        ):
            return None
    if len(parts) == 1:
        if not (run.titles or listed or _AFTER.match(run.after)):
            return None
        name = full_name(name, text) or _throne_name(run)
        if not name:
            return None
    if run.opens and len(parts) > 1 and re.match(r",\s+[A-Z]\w+(?:,|\s*[-–(]|\s*$)", run.after) and not listed:
        return None  # a dateline: "Cape Canaveral, Florida"
    return Entity(name=name, type="person", phrase="person")


def _throne_name(run: Run) -> str:
    """ "Pope Francis", "King Charles": a title that goes with a single name is a part of it."""
    title = run.titles[-1] if run.titles else ""
    return f"{title} {run.name}" if title.lower() in SINGLE_NAME_TITLES else ""


# ---------------------------------------------------------------- places


def _position(run: Run, plain: str) -> str:
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


def _in_list(run: Run, listing: int | None) -> bool:
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

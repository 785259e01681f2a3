"""Facts that an article states of a named entity, as predicates that a question can end with.

"Eileen Collins commanded the STS-93 mission in 1999." gives "commanded the STS-93 mission in 1999". Only sentences
are used whose subject is surely the entity, and whole predicates that begin with a finite verb; nothing is reworded,
so the question says what the article says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.core.schema import Entity
from engine.questions.lexicon import (
    AUXILIARIES,
    IRREGULAR_PAST,
    PARTICIPLES,
    PRESENT,
    PRODUCT_PHRASES,
    TITLES,
)
from engine.questions.text import atoms, has_phrase, level, sentences

MIN_WORDS, MAX_WORDS = 3, 26
_OPENER = re.compile(
    r"^(?:On|In|At|After|Before|During|For|Since|Last|This|Earlier|Later|By|From|Then|Meanwhile|Also|Today|Yesterday)\b"
    r"[^,;:\"“]{0,60},\s*$"
)
_CUT = re.compile(
    r"\s*(?:;|:| [–—-] |\(|[\"“”]"
    r"|, (?:but|and|while|which|who|where|when|adding|according|with|after|before|as|said)\b.*"
    r"|,? according to\b|,? (?:he|she|they|it) (?:said|added|told)\b)"
)
#: "I" after a capital letter is a number: "Mark I".
_FIRST_PERSON = re.compile(r"\b(?:me|my|we|us|our|you|your)\b|(?:^|[^A-Za-z ] ?|\b[a-z]+ )I(?:'\w+)?\b")
#: Words that no predicate ends with.
_OPEN_END = frozenset(
    ["and", "or", "the", "a", "an", "of", "to", "in", "with", "that", "said", "for", "by", "at", "on"]
)
_WEAK = frozenset(
    ["said", "says", "told", "is", "was", "has", "had", "would", "could", "should", "might", "may", "does", "did"]
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A predicate, the verbatim sentence that holds it, its place in the text, and how much it tells apart."""

    predicate: str
    sentence: str
    order: int
    score: float


def facts_about(entity: Entity, text: str, *, others: tuple[Entity, ...] = ()) -> list[Fact]:
    """Facts, the most telling first. `others` are the picture's other entities: shared surnames are not used."""
    names = _forms(entity, others)
    found: list[Fact] = []
    for order, sentence in enumerate(sentences(text)):
        for rank, name in enumerate(names):
            predicates = _predicates(entity, name, sentence)
            found += [Fact(p, sentence, order, _score(p, order) - 0.5 * rank) for p in predicates]
            if predicates:
                break
    unique = {fact.predicate: fact for fact in sorted(found, key=lambda fact: fact.score)}
    return sorted(unique.values(), key=lambda fact: (-fact.score, fact.order, fact.predicate))


def surname_of(name: str) -> str:
    """The last word of a person's name, without Jr. and the like; empty for a single word."""
    parts = [part for part in name.split() if part.rstrip(".") not in ("Jr", "Sr", "II", "III", "IV")]
    return parts[-1] if len(parts) > 1 else ""


def _forms(entity: Entity, others: tuple[Entity, ...]) -> list[str]:
    forms = [entity.name]
    if entity.type == "person":
        surname = surname_of(entity.name)
        shared = any(surname in other.name.split() for other in others if other.name != entity.name)
        if surname and not shared:
            forms.append(surname)
    return forms


def _predicates(entity: Entity, name: str, sentence: str) -> list[str]:
    found: list[str] = []
    plain = level(sentence)
    if level(name) not in plain:
        return found
    for match in re.finditer(rf"(?<![\w-]){re.escape(level(name))}(?![\w-])", plain):
        before, rest = plain[: match.start()], plain[match.end() :]
        if entity.type == "product":
            rest = _skip_noun(rest)
        clause = re.match(r",? (?:who|which) ", rest)
        if clause:
            found += _whole(rest[clause.end() :].split(",")[0], entity)
        if not _is_subject(before, entity):
            continue
        if re.match(r" [a-z]", rest):
            found += _whole(rest.strip(), entity)
        elif rest.startswith(", "):
            inner, _, after = rest[2:].partition(", ")
            if after:
                found += _whole(after, entity)
            if re.match(r"(?:the|a|an) ", inner) and len(inner.split()) >= MIN_WORDS:
                found += _whole(f"is {inner}", entity)
    return found


def _is_subject(before: str, entity: Entity) -> bool:
    """Whether what stands before a name at most introduces it."""
    words = before.split()
    while words and words[-1].lower().strip(".,") in TITLES | {"the", "a", "an", "new", entity.phrase}:
        words.pop()
    rest = " ".join(words)
    return not rest or _OPENER.match(f"{rest} ") is not None


def _skip_noun(rest: str) -> str:
    match = re.match(r"(?: [a-z-]+){1,3}", rest)
    if not match:
        return rest
    words = match[0].split()
    for count in (1, 2, 3):
        if len(words) >= count and words[count - 1] in PRODUCT_PHRASES:
            return re.sub(rf"^(?: [a-z-]+){{{count}}}", "", rest)
    return rest


def _whole(text: str, entity: Entity) -> list[str]:
    """The predicate in `text` if it is one that a question can carry, as a list of none or one."""
    plain = text.strip().rstrip(".!?,;: ")
    cut = _CUT.search(plain)
    if cut:
        plain = plain[: cut.start()].rstrip(" ,")
    count = len(plain.split())
    if not MIN_WORDS <= count <= MAX_WORDS or not _is_finite(plain.split()[0]):
        return []
    if plain.split()[-1].lower() in _OPEN_END:
        return []
    if _FIRST_PERSON.search(plain) or any(has_phrase(plain, part) for part in entity.name.split() if len(part) > 1):
        return []
    return [plain]


def _is_finite(word: str) -> bool:
    lowered = word.lower()
    if lowered in AUXILIARIES | IRREGULAR_PAST | PRESENT:
        return True
    return lowered.endswith("ed") and len(lowered) > 3 and lowered not in PARTICIPLES


def _score(predicate: str, order: int) -> float:
    """Names, numbers and a full verb tell entities apart; the article's first sentences are its news."""
    tokens = predicate.split()
    telling = sum(token[0].isupper() or token[0].isdigit() for token in tokens[1:])
    weak = 1.5 if tokens[0].lower() in _WEAK else 0.0
    distinct = len(set(atoms(predicate)))
    return min(telling, 4) + min(distinct, 12) / 4 - weak - 0.1 * min(order, 10)

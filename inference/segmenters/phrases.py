"""What kind of thing a prompt asks for, in words an open-vocabulary detector understands.

"Which person in the image commanded the flight?" asks for a "person"; a prompt that is no question is a phrase
already. Names stay in: whoever knows them gains, and who does not reads the noun before them.
"""

from __future__ import annotations

import re


def words_of(text: str) -> frozenset[str]:
    """A set of words written as one text."""
    return frozenset(text.split())


PERSON_WORDS = words_of(
    "person people human man men woman women boy girl child kid baby lady gentleman athlete player footballer striker "
    "goalkeeper swimmer runner cyclist driver pilot astronaut cosmonaut actor actress singer rapper musician dancer "
    "artist author writer director model host star celebrity comedian chef politician president minister chancellor "
    "senator governor mayor councillor ambassador candidate king queen prince princess pope bishop judge lawyer "
    "prosecutor officer soldier sailor admiral general scientist engineer doctor nurse founder executive ceo "
    "businessman businesswoman billionaire banker coach manager captain commander leader official speaker chairman "
    "chairwoman spokesman spokeswoman guest winner champion character activist journalist"
)
_FILLER = re.compile(
    r"\s+(?:in|on|from|of|at)\s+(?:the|this|these|that)\s+(?:image|images|picture|pictures|photo|photos|photograph|scene)s?\b"
    r"|\s+(?:shown|pictured|seen|visible|depicted)(?:\s+here)?\b",
    re.IGNORECASE,
)
#: Words that end the noun phrase after "which": verbs, prepositions, relative pronouns.
_ENDS = words_of(
    "is was were are be been has had have did does do can could will would should may might that which who whose "
    "in on at of from with by for to as into during after before"
)
_QUESTION = re.compile(r"^\s*(which|what|who|whose|whom|where|segment|find|show|please)\b", re.IGNORECASE)
_MAX_NOUN_WORDS = 4


def is_question(prompt: str) -> bool:
    """Whether the prompt is a sentence that asks, not the name of a thing."""
    return prompt.rstrip().endswith("?") or bool(_QUESTION.match(prompt))


def predicate_of(question: str) -> str:
    """The question without its asking part: "Which person in the image commanded X?" gives "commanded X"."""
    flat = _FILLER.sub("", " ".join(question.split())).rstrip(" ?.!")
    noun = _noun_words(flat)
    if noun is None:
        return flat
    return " ".join(flat.split()[1 + len(noun) :])


def noun_of(question: str) -> str:
    """The noun phrase that a question asks for, lower case; "object" if there is none."""
    flat = _FILLER.sub("", " ".join(question.split())).rstrip(" ?.!")
    first = flat.split(" ", 1)[0].lower() if flat else ""
    if first in ("who", "whose", "whom"):
        return "person"
    noun = _noun_words(flat)
    return " ".join(noun).lower() if noun else "object"


def phrase_of(prompt: str) -> str:
    """The phrase to look for: the noun of a question, a phrase as it is without articles and end marks."""
    if is_question(prompt):
        return noun_of(prompt)
    return re.sub(r"^(?:the|a|an)\s+", "", prompt.strip().rstrip(" .!"), flags=re.IGNORECASE) or "object"


def phrases_of(prompt: str) -> tuple[str, ...]:
    """The phrase to look for, as the only one."""
    return (phrase_of(prompt),)


def nouns_of(question: str) -> tuple[str, ...]:
    """The noun a question asks for, as the only phrase."""
    return (noun_of(question),)


def asks_for_person(phrase: str) -> bool:
    """Whether a phrase or question is about a person."""
    words = noun_of(phrase).split() if is_question(phrase) else re.findall(r"[a-z]+", phrase.lower())
    return any(word in PERSON_WORDS for word in words)


def _noun_words(flat: str) -> list[str] | None:
    words = flat.split()
    if not words or words[0].lower() not in ("which", "what"):
        return None
    noun: list[str] = []
    for word in words[1 : 1 + _MAX_NOUN_WORDS]:
        plain = word.lower().strip(",;:")
        if plain in _ENDS or (noun and _looks_like_verb(plain)):
            break
        noun.append(plain)
        if plain in PERSON_WORDS or plain != word.lower():
            break
    return noun


def _looks_like_verb(word: str) -> bool:
    return word in _IRREGULAR or (len(word) > 3 and word.endswith(("ed", "ing")))


_IRREGULAR = words_of(
    "won led took made wrote gave became began broke brought built came chose drew drove fell flew found held kept "
    "knew left lost met paid ran rose said sang sold sent set shot spoke stood struck swam taught told went wore "
    "beat cut hit put read opens sells costs runs leads plays goes weighs carries uses makes holds takes offers "
    "comes gets gives keeps shows wins works flies drives serves won't"
)

"""Names in running English text by their shape: runs of capitalised words, with digits for products.

No model and no list of names, so it finds names nobody knew before, which is what the task is about. It does not
decide which name is the answer; that is `answer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from inference.rose.text import fold
from inference.segmenters.phrases import words_of

_TOKEN = re.compile(r"[^\W_](?:[\w'’.&+/-]*[\w+])?|[,;:()\"“”]", re.UNICODE)
_PARTICLES = words_of("de del della van von der den bin al la le di da dos y")
_TITLES = words_of(
    "mr mrs ms dr prof professor sir dame captain capt colonel col general gen admiral commander rear "
    "president minister senator mayor judge coach king queen prince princess pope chancellor astronaut "
    "pilot chief director computer scientist"
)
_NO_START = words_of(
    "the a an in on at by for from with but and as if it its he she they his her their this that these "
    "those when while after before since until although because which who what there then now one two "
    "three four five both all some many most no not we our you i made made-up fiction new last early "
    "later earlier monday tuesday wednesday thursday friday saturday sunday january february march april "
    "may june july august september october november december"
)
_NOT_PERSON = words_of(
    "university institute inc corp ltd company museum center centre agency committee council parliament "
    "senate congress court party union league cup festival award awards prize street avenue park city "
    "county river bank ministry department navy army force house school college club news times herald "
    "gazette courier space station shuttle hall week day fair forum conference summit group team"
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a sentence: its words and where its first character stands. `sure` is False for a lone first word
    of a sentence, which may be capitalised for that alone."""

    text: str
    start: int
    sure: bool = True


def find_names(sentence: str) -> list[Name]:
    """Names in a sentence from left to right."""
    tokens = [(match.group(), match.start()) for match in _TOKEN.finditer(sentence)]
    names: list[Name] = []
    run: list[tuple[str, int, int]] = []

    def close() -> None:
        while run and (fold(run[-1][0]) in _PARTICLES):
            run.pop()
        while run and fold(run[0][0]).rstrip(".") in (_NO_START | _TITLES):
            run.pop(0)
        if run:
            lone = len(run) == 1 and run[0][2] == 0
            if any(len(word) > 1 for word, _, _ in run):
                # as it is written, with the full stops of initials
                written = sentence[run[0][1] : run[-1][1] + len(run[-1][0])]
                text = re.sub(r"['’]s$", "", " ".join(written.split())).rstrip(".")
                names.append(Name(text=text, start=run[0][1], sure=not lone))
        run.clear()

    for place, (word, start) in enumerate(tokens):
        if _is_named(word) or (run and re.fullmatch(r"\d[\w-]*", word)):
            run.append((word, start, place))
            if re.search(r"['’]s$", word):
                close()
        elif run and fold(word) in _PARTICLES:
            run.append((word, start, place))
        else:
            close()
    close()
    return names


def looks_like_person(name: str) -> bool:
    """Whether a name may be a person's: letters only, one to five words, no word of an institution or a place."""
    words = name.split()
    if not 1 <= len(words) <= 5 or any(not re.fullmatch(r"[^\W\d_]+(?:['’.-][^\W\d_]*)*", word) for word in words):
        return False
    return not any(fold(word).rstrip(".") in _NOT_PERSON for word in words)


def complete(name: str, known: Iterable[str]) -> str:
    """The longest known name that ends or begins with this shorter one: "Hopper" becomes "Grace Hopper"."""
    own = fold(name).split()
    best = name
    for other in known:
        words = fold(other).split()
        ends = len(words) > len(own) and (words[-len(own) :] == own or words[: len(own)] == own)
        if ends and len(words) > len(best.split()):
            best = other
    return best


def _is_named(word: str) -> bool:
    # "iPhone" and "eBay" have their capital later
    return bool(word[0].isupper() or re.fullmatch(r"[a-z]{1,2}[A-Z][\w-]*", word))

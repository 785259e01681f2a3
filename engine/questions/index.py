"""The window's articles as witnesses: which publishers state a public role for a name, and who is said to be a child.

Built once per window from the articles themselves, no network. Two sites that print the same sentence are one witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.schema import Article
from engine.questions.facts import surname_of
from engine.questions.lexicon import OPENERS, TITLES
from engine.questions.roles import role_in
from engine.questions.text import fold, has_phrase, level, places, sentences

_CHILD = re.compile(
    r"\b(?:schoolboy|schoolgirl|toddler|infant|baby|pupil|teenager|teenage|child|boy|girl|juvenile|minor)$"
)
_AGE_AFTER = re.compile(r"(?:,| \(|, (?:who is|aged)|, age|, who turned) ?(?:aged? )?(\d{1,2})(?=[,.)\s]|-year|$)")
_AGE_BEFORE = re.compile(r"\b(\d{1,2})-year-old (?:[\w-]+ ){0,3}$")
ADULT_AGE = 18


@dataclass(frozen=True, slots=True)
class Witness:
    """A publisher, and its sentence that states a role of a person."""

    publisher: str
    sentence: str
    role: str


class NewsIndex:
    """Looks up names in a set of articles; sentences are split once."""

    def __init__(self, articles: Iterable[Article]) -> None:
        self._texts: list[tuple[str, list[str], str]] = []
        for article in sorted(articles, key=lambda item: item.id):
            publisher = fold(article.publisher or urlsplit(article.canonical_url or article.url).hostname or "")
            parts = [article.title, *sentences(article.text), *(image.caption for image in article.images)]
            self._texts.append((publisher, parts, fold("\n".join(parts))))

    def roles_of(self, name: str) -> tuple[Witness, ...]:
        """Independent witnesses of a public role: at most one per publisher, no sentence twice."""
        found: dict[str, Witness] = {}
        seen: set[str] = set()
        for publisher, form, sentence, following in self._places_of(name):
            role = role_in(sentence, form, following=following)
            same = fold(sentence)
            if role and publisher not in found and same not in seen:
                found[publisher] = Witness(publisher, sentence, role)
                seen.add(same)
        return tuple(found[publisher] for publisher in sorted(found))

    def _places_of(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        """(publisher, form of the name, sentence, the one after it) of every sentence, title and caption that names
        `name`; by the surname alone only in articles that give the whole name."""
        wanted, surname = fold(name), fold(surname_of(level(name)))
        for publisher, parts, whole in self._texts:
            if wanted in whole:
                for index, part in enumerate(parts):
                    form = wanted if has_phrase(part, wanted) else surname
                    if form and has_phrase(part, form):
                        yield publisher, form, part, parts[index + 1] if index + 1 < len(parts) else ""

    def child_evidence(self, name: str) -> str:
        """The sentence that gives an age below 18 or calls the person a child, or an empty string."""
        for _, form, sentence, _following in self._places_of(name):
            plain = fold(sentence)
            for start, end in places(plain, form):
                head, rest = plain[:start], plain[end:]
                if form != fold(name) and _given_before(sentence, form):
                    continue
                found = [match for match in (_AGE_AFTER.match(rest), _AGE_BEFORE.search(head)) if match]
                if any(int(match[1]) < ADULT_AGE for match in found):
                    return sentence
                if not found and _CHILD.search(head.rstrip()):
                    return sentence
        return ""


def _given_before(sentence: str, surname: str) -> bool:
    """Whether somebody's given name stands before the surname: a relative's."""
    match = re.search(rf"([^\W_][\w'-]*) {re.escape(surname)}(?![^\W_])", level(sentence), re.I)
    return match is not None and match[1][0].isupper() and fold(match[1]) not in TITLES | OPENERS

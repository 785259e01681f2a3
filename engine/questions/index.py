"""The window's articles as witnesses: which publishers state a public role for a name, and who is said to be a child.

Built once per window from the articles themselves, no network. Two sites that print the same sentence are one witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.schema import Article
from engine.questions.lexicon import PUBLIC_ROLES
from engine.questions.text import fold, sentences

#: How far from the name a role may stand, in words before and after.
BEFORE_WORDS, AFTER_WORDS = 5, 12
_FIRST_TO = re.compile(r"\bfirst (?:\w+ ){1,3}to\b|\bwinner of\b|\belected\b|\bcommanded\b|\bgold medal")
_CHILD = re.compile(
    r"\b(?:schoolboy|schoolgirl|toddler|infant|baby|pupil|teenager|teenage|child|boy|girl|juvenile|minor)$"
)
ADULT_AGE = 18
_FINITE = frozenset(("is", "was", "has", "had", "will", "would", "said", "of", "in", "at", "for", "from", "with", "to"))


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
        for publisher, sentence, following in self._places_of(name):
            role = _role_near(fold(name), fold(sentence)) or _role_after(fold(following))
            same = fold(sentence)
            if role and publisher not in found and same not in seen:
                found[publisher] = Witness(publisher, sentence, role)
                seen.add(same)
        return tuple(found[publisher] for publisher in sorted(found))

    def _places_of(self, name: str) -> Iterator[tuple[str, str, str]]:
        """(publisher, sentence, the one after it) of every sentence, title and caption that names `name` in full."""
        wanted = fold(name)
        pattern = re.compile(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])")
        for publisher, parts, whole in self._texts:
            if wanted in whole:
                for index, part in enumerate(parts):
                    if pattern.search(fold(part)):
                        yield publisher, part, parts[index + 1] if index + 1 < len(parts) else ""

    def child_evidence(self, name: str) -> str:
        """The sentence that gives an age below 18 or calls the person a child, or an empty string."""
        wanted = re.escape(fold(name))
        after = re.compile(
            rf"{wanted}(?:,| \(|, (?:who is|aged)|, age|, who turned) ?(?:aged? )?(\d{{1,2}})(?=[,.)\s]|-year)"
        )
        before = re.compile(rf"\b(\d{{1,2}})-year-old (?:[\w-]+ ){{0,3}}{wanted}")
        for _, sentence, _following in self._places_of(name):
            plain = fold(sentence)
            ages = [int(match[1]) for pattern in (after, before) for match in pattern.finditer(plain)]
            if any(age < ADULT_AGE for age in ages):
                return sentence
            for match in re.finditer(wanted, plain):
                head = plain[: match.start()].rstrip()
                if _CHILD.search(head) and not ages:
                    return sentence
        return ""


def _role_near(name: str, sentence: str) -> str:
    for match in re.finditer(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", sentence):
        before = re.findall(r"[\w-]+", sentence[: match.start()])[-BEFORE_WORDS:]
        rest = re.split(r"[;:]", sentence[match.end() :])[0]
        after = re.findall(r"[\w-]+", rest)[:AFTER_WORDS]
        for word in [*reversed(before), *after]:
            if word in PUBLIC_ROLES:
                return str(word)
        if told := _FIRST_TO.search(rest):
            return str(told[0])
    return ""


def _role_after(following: str) -> str:
    """A role by which the next sentence goes on: "The Navy admiral is the subject of the lecture."."""
    match = re.match(r"(?:the|this) ((?:[\w-]+(?:'s)?\s+){1,6})", following)
    named = match[1].split() if match else []
    for word in named:
        bare = word.removesuffix("'s")
        if bare in PUBLIC_ROLES:
            return bare
        if bare in _FINITE:
            break
    return ""

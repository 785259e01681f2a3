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
from engine.questions.text import fold, has_phrase, places, sentences

#: How far from the name a role may stand, in words before and after.
BEFORE_WORDS, AFTER_WORDS = 5, 12
_FIRST_TO = re.compile(r"\bfirst (?:\w+ ){1,3}to\b|\bwinner of\b|\belected\b|\bcommanded\b|\bgold medal")
_CHILD = re.compile(
    r"\b(?:schoolboy|schoolgirl|toddler|infant|baby|pupil|teenager|teenage|child|boy|girl|juvenile|minor)$"
)
_AGE_AFTER = re.compile(r"(?:,| \(|, (?:who is|aged)|, age|, who turned) ?(?:aged? )?(\d{1,2})(?=[,.)\s]|-year|$)")
_AGE_BEFORE = re.compile(r"\b(\d{1,2})-year-old (?:[\w-]+ ){0,3}$")
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
        for publisher, parts, whole in self._texts:
            if wanted in whole:
                for index, part in enumerate(parts):
                    if has_phrase(part, wanted):
                        yield publisher, part, parts[index + 1] if index + 1 < len(parts) else ""

    def child_evidence(self, name: str) -> str:
        """The sentence that gives an age below 18 or calls the person a child, or an empty string."""
        for _, sentence, _following in self._places_of(name):
            plain = fold(sentence)
            for start, end in places(plain, fold(name)):
                head, rest = plain[:start], plain[end:]
                found = [match for match in (_AGE_AFTER.match(rest), _AGE_BEFORE.search(head)) if match]
                if any(int(match[1]) < ADULT_AGE for match in found):
                    return sentence
                if not found and _CHILD.search(head.rstrip()):
                    return sentence
        return ""


def has_role(folded: str) -> bool:
    """Whether a folded text names a public role at all."""
    return any(word in PUBLIC_ROLES for word in re.findall(r"[\w-]+", folded))


def _role_near(name: str, sentence: str) -> str:
    for start, end in places(sentence, name):
        before = re.findall(r"[\w-]+", sentence[:start])[-BEFORE_WORDS:]
        rest = re.split(r"[;:]", sentence[end:])[0]
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

"""Reading the answer out of retrieved text without a language model.

The reader looks for sentences that say what the question says, and takes the name that stands where the question has
"which person" or "which product": the sentence's subject, the name after "by" in a passive, or, for a sentence that
begins with a pronoun, the one before it. Every retrieved sentence votes, so a fact that two pages report wins over one
that a single page does. It is deterministic; `read_llm` is the other reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inference.rose.cost import Cost
from inference.rose.names import Name, complete, find_names, looks_like_person
from inference.rose.text import Chunk, coverage, fold, rarity, stem, stems
from inference.segmenters.phrases import asks_for_person, noun_of, predicate_of

#: A sentence has to cover so much of the question (our choice: below, it is about something else).
MIN_COVERAGE = 0.35
#: Worth of a name by its place (our choice): subject, other names before the predicate, after it, from before.
SUBJECT, BESIDE, AFTER, BEFORE = 1.0, 0.6, 0.4, 0.8
#: What stands right before a name that a preposition governs, articles and titles between them left out.
_GOVERNED = re.compile(
    r"\b(?:in|at|on|of|from|with|for|to|over|near|after|before|under|between|against|about|into|off|across|around|"
    r"beside|behind|alongside|than|like|despite|during|inside|outside|through|towards?)\s+(?:(?:the|a|an|his|her|its|"
    r"their|both|captain|president|mayor|dr\.?|mr\.?|ms\.?|mrs\.?)\s+)*$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"^(?:he|she|they|it|his|her|their|its|this|the)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer, its confidence 0 to 1, and the sentence and page that say so."""

    name: str
    score: float
    sentence: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """Candidates, best first, what reading cost, and what went wrong with single chunks."""

    candidates: tuple[Candidate, ...]
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads candidate answers out of chunks."""

    name: str

    async def read(self, question: str, chunks: Sequence[Chunk]) -> Reading: ...


class ExtractReader:
    """The reader that needs no model."""

    name = "extract-2"

    async def read(self, question: str, chunks: Sequence[Chunk]) -> Reading:
        return Reading(candidates=tuple(extract(question, chunks)))


def extract(question: str, chunks: Sequence[Chunk]) -> list[Candidate]:
    """Candidate answers with confidence, best first; ties by name."""
    wanted = stems(predicate_of(question))
    person = asks_for_person(noun_of(question))
    asked = set(fold(question).replace("'s", "").replace("’s", "").split())
    bags = [stems(sentence) for chunk in chunks for sentence in chunk.sentences]
    weight = rarity(bags)
    found: dict[str, list[Candidate]] = {}
    seen: set[tuple[str, str]] = set()
    for chunk in chunks:
        known = _known(chunk, person=person)
        for place, sentence in enumerate(chunk.sentences):
            if (chunk.url, sentence) in seen:
                continue
            seen.add((chunk.url, sentence))
            share = coverage(wanted, stems(sentence), weight)
            if share < MIN_COVERAGE:
                continue
            before = [*chunk.sentences[:place][-2:][::-1], chunk.title]
            for name, worth in _placed(sentence, before, wanted, known, asked, person=person):
                whole = complete(name, known)
                candidate = Candidate(name=whole, score=share * worth, sentence=sentence, url=chunk.url)
                found.setdefault(fold(whole), []).append(candidate)
    merged = [_merge(votes) for votes in found.values()]
    return sorted(merged, key=lambda candidate: (-candidate.score, candidate.name))


def _merge(votes: Sequence[Candidate]) -> Candidate:
    """One candidate of all its sentences: the best one's score, brought nearer to 1 by what other pages say.

    Votes close a part of the gap and never all of it: a sentence that says what was asked stays before several that say
    something like it.
    """
    ordered = sorted(votes, key=lambda vote: (-vote.score, vote.url, vote.sentence))
    best = ordered[0]
    pages: dict[str, float] = {}
    for vote in ordered[1:]:
        if vote.url != best.url:
            pages[vote.url] = max(pages.get(vote.url, 0.0), vote.score)
    closed = 1.0 - 1.0 / (1.0 + 0.5 * sum(pages.values()))
    top = min(1.0, best.score)
    return Candidate(name=best.name, score=top + (1.0 - top) * closed, sentence=best.sentence, url=best.url)


def _known(chunk: Chunk, *, person: bool) -> list[str]:
    texts = [chunk.title, *chunk.sentences]
    names = {name.text for text in texts for name in find_names(text)}
    fit = [name for name in names if len(name.split()) > 1 and (not person or looks_like_person(name))]
    return sorted(fit, key=lambda name: (len(name.split()), name))


def _placed(
    sentence: str, before: Sequence[str], wanted: Sequence[str], known: Sequence[str], asked: set[str], *, person: bool
) -> list[tuple[str, float]]:
    """Names of a sentence with the worth of their place; `before` are earlier sentences, the nearest first.

    The subject is the first name before the predicate that no preposition governs: in "In Brickfield the Vireo 12E
    replaced ..." it is the bus. Names of the question itself are no answers and stand for nothing.
    """
    names = [n for n in _fitting(find_names(sentence), known, person=person) if not _is_asked(n.text, known, asked)]
    verb = _first_match(sentence, wanted)
    passive = re.search(r"\bby\s+(?:the\s+)?", sentence[verb:]) if verb is not None else None
    placed: list[tuple[str, float]] = []
    subject = False
    for name in names:
        if passive is not None and verb is not None and name.start == verb + passive.end():
            placed.append((name.text, SUBJECT))
        elif verb is not None and name.start > verb:
            placed.append((name.text, AFTER))
        elif subject or _GOVERNED.search(sentence[: name.start]):
            placed.append((name.text, BESIDE))
        else:
            placed.append((name.text, SUBJECT))
            subject = True
    if not subject and _PRONOUN.match(sentence):
        for earlier in before:
            told = _fitting(find_names(earlier), known, person=person)
            told = [name for name in told if not _is_asked(name.text, known, asked)]
            if told:
                placed.append((told[0].text, BEFORE))
                break
    return placed


def _fitting(names: Sequence[Name], known: Sequence[str], *, person: bool) -> list[Name]:
    """Names of the wanted shape; a lone first word counts if the page has it as part of a whole name."""
    sure = [name for name in names if name.sure or complete(name.text, known) != name.text or name.text in known]
    return [name for name in sure if not person or looks_like_person(name.text)]


def _first_match(sentence: str, wanted: Sequence[str]) -> int | None:
    """Where the first of the question's words stands, in characters."""
    want = set(wanted)
    for match in re.finditer(r"[^\W_]+", sentence):
        if stem(fold(match.group())) in want:
            return match.start()
    return None


def _is_asked(name: str, known: Sequence[str], asked: set[str]) -> bool:
    """Whether the name stands in the question itself, so that it cannot be the answer."""
    tokens = {token.strip(".,?;:()\"'") for token in asked}
    return all(word.strip(".,") in tokens for word in fold(complete(name, known)).split())

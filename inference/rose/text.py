"""Plain text for retrieval: sentences, chunks, stems, and how well a text covers a question's words.

Lexical on purpose: it needs no model, gives the same result everywhere, and news answers news questions mostly in the
same words. Finding names is in `names`, reading answers in `answer`.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from inference.segmenters.phrases import words_of

_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|gen|col|lt|capt|sgt|sen|rep|gov|st|jr|sr|inc|ltd|co|corp|vs|no|jan|feb|mar|apr|jun|jul|"
    r"aug|sep|sept|oct|nov|dec|e\.g|i\.e|u\.s|u\.k|u\.n)|\b[A-Z])\.$",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]?[A-Z0-9])")
STOP = words_of(
    "a an and are as at be been being but by did do does for from had has have he her hers him his i in into is it "
    "its more most no not of on or our out over s she so than that the their them then there these they this to "
    "up us was we were what when where which who whom whose will with you your also after before during about "
    "image images picture pictures photo photograph shown pictured seen person product people one"
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole sentences of one document; `score` is its rank figure, higher is better."""

    url: str
    title: str
    sentences: tuple[str, ...]
    published: datetime | None = None
    score: float = 0.0

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def split_sentences(text: str) -> list[str]:
    """Sentences of a text; a line break ends one, an initial or a title's full stop does not."""
    found: list[str] = []
    for line in text.splitlines():
        pieces = _END.split(line.strip())
        held = ""
        for piece in pieces:
            held = f"{held} {piece}".strip()
            if held and not _ABBREVIATION.search(held):
                found.append(held)
                held = ""
        if held:
            found.append(held)
    return found


def split_chunks(
    text: str, *, words: int, url: str = "", title: str = "", published: datetime | None = None
) -> list[Chunk]:
    """Chunks of whole sentences of at most `words` words (one longer sentence is a chunk), with one sentence of
    overlap, so that "She ..." keeps the sentence that says who."""
    chunks: list[Chunk] = []
    held: list[str] = []
    fresh = 0
    for sentence in split_sentences(text):
        if fresh and sum(len(s.split()) for s in held) + len(sentence.split()) > words:
            chunks.append(Chunk(url=url, title=title, sentences=tuple(held), published=published))
            held, fresh = held[-1:], 0
        held.append(sentence)
        fresh += 1
    if fresh:
        chunks.append(Chunk(url=url, title=title, sentences=tuple(held), published=published))
    return chunks


def fold(text: str) -> str:
    """Lower case without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in plain if not unicodedata.combining(c))


def stem(word: str) -> str:
    """A word without its common English endings; crude and the same for "opened", "opening" and "opens"."""
    for ending in ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stems(text: str) -> list[str]:
    """Stems of the telling words of a text, in order."""
    words = re.findall(r"[^\W_]+", fold(text).replace("’", "'").replace("'s", ""))
    return [stem(word) for word in words if word not in STOP]


def rarity(documents: Sequence[Sequence[str]]) -> dict[str, float]:
    """Inverse document frequency of each stem: ln(1 + N / df)."""
    count: dict[str, int] = {}
    for document in documents:
        for word in set(document):
            count[word] = count.get(word, 0) + 1
    return {word: math.log1p(len(documents) / df) for word, df in count.items()}


def coverage(wanted: Sequence[str], found: Sequence[str], weight: Mapping[str, float]) -> float:
    """Share of the wanted stems' weight that a text has, 0 to 1; half of it counts pairs that stand together too.

    Stems that no text has weigh as much as the rarest, so a question about something else covers badly.
    """
    if not wanted:
        return 0.0
    rarest = max(weight.values(), default=1.0)
    have = set(found)
    total = sum(weight.get(word, rarest) for word in dict.fromkeys(wanted))
    single = sum(weight.get(word, rarest) for word in dict.fromkeys(wanted) if word in have) / total
    pairs = list(itertools.pairwise(wanted))
    if not pairs:
        return single
    there = set(itertools.pairwise(found))
    return (2.0 * single + single * sum(pair in there for pair in pairs) / len(pairs)) / 3.0


def rank_chunks(question: str, chunks: Sequence[Chunk], *, limit: int) -> list[Chunk]:
    """The `limit` chunks that cover the question best, best first; ties by URL and place, none without any word."""
    wanted = stems(question)
    bags = [stems(chunk.text) for chunk in chunks]
    weight = rarity(bags)
    scored = [(coverage(wanted, bag, weight), place) for place, bag in enumerate(bags) if set(wanted) & set(bag)]
    scored.sort(key=lambda item: (-item[0], chunks[item[1]].url, item[1]))
    return [
        Chunk(
            url=chunks[place].url,
            title=chunks[place].title,
            sentences=chunks[place].sentences,
            published=chunks[place].published,
            score=score,
        )
        for score, place in scored[:limit]
    ]

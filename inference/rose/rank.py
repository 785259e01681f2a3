"""Which chunks are read: those nearest to the question, by vectors or by shared words.

The paper embeds chunks into a vector store and names no embedder; here a store would live for one question, so the
vectors are compared as they are. `PortableTextEmbedder` needs no model and is the default; any model behind an
OpenAI-compatible endpoint is the other choice (`engine.llm.embeddings`, which records its vectors). `WordRanker` counts
shared words and uses no vectors. Making chunks is in `text`, reading them in `answer` and `read_llm`.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from engine.core.protocols import TextEmbedder, TextVectors
from inference.rose.cost import Cost
from inference.rose.text import Chunk, rank_chunks, rarity, stems

#: Width of the portable vectors; two features of a news page then seldom share a place.
WIDTH = 4096
#: Weights of a stem, of two stems in a row, and of four letters in a row (our choice: words say most, neighbours tell
#: events apart, letters bring "sails" near "sailor").
STEM, PAIR, LETTERS = 1.0, 0.7, 0.15


@dataclass(frozen=True, slots=True)
class Ranked:
    """Chunks, nearest first, with their similarity as `score`, and what ranking cost."""

    chunks: tuple[Chunk, ...]
    cost: Cost = field(default_factory=Cost)


class ChunkRanker(Protocol):
    """Orders chunks by nearness to a question and keeps the first `limit`."""

    name: str

    async def rank(self, question: str, chunks: Sequence[Chunk], *, limit: int) -> Ranked: ...


class WordRanker:
    """By the share of the question's words that a chunk has, rare ones counting more."""

    name = "words-1"

    async def rank(self, question: str, chunks: Sequence[Chunk], *, limit: int) -> Ranked:
        return Ranked(tuple(rank_chunks(question, chunks, limit=limit)))


class VectorRanker:
    """By the cosine of the question's vector and the chunk's, whose title is embedded with it."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self.embedder = embedder
        self.name = embedder.name

    async def rank(self, question: str, chunks: Sequence[Chunk], *, limit: int) -> Ranked:
        """Ties go by URL and place; what points away from the question is left out."""
        if not chunks:
            return Ranked(())
        texts = [question, *(f"{chunk.title}\n{chunk.text}" for chunk in chunks)]
        found = await self.embedder.embed(texts)
        alike = (found.vectors[1:] @ found.vectors[0]).tolist()
        order = sorted(range(len(chunks)), key=lambda place: (-alike[place], chunks[place].url, place))
        kept = tuple(replace(chunks[place], score=alike[place]) for place in order if alike[place] > 0)
        return Ranked(kept[:limit], Cost(usd=found.usd, tokens_in=found.tokens))


class PortableTextEmbedder:
    """Hashed vectors of stems, pairs of stems and runs of letters, each weighted by its rarity among the texts that
    are embedded together (Salton and Buckley, 1988; the hashing trick of Weinberger et al., 2009)."""

    name = "portable-text-1"

    async def embed(self, texts: Sequence[str]) -> TextVectors:
        bags = [_features(text) for text in texts]
        weight = rarity([list(bag) for bag in bags])
        vectors = np.zeros((len(texts), WIDTH), np.float64)
        for row, bag in enumerate(bags):
            for feature, count in bag.items():
                code = zlib.crc32(feature.encode())
                # a sign of its own lets features that share a place cancel out instead of adding up
                sign = 1.0 if code & 0x80000000 else -1.0
                vectors[row, code % WIDTH] += sign * _kind(feature) * (1.0 + np.log(count)) * weight[feature]
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return TextVectors((vectors / np.where(length > 0, length, 1.0)).astype(np.float32))


def _features(text: str) -> Mapping[str, int]:
    """How often each feature stands in a text: stems as they are, "a b" for pairs, "#abcd" for letters."""
    found: dict[str, int] = {}
    words = stems(text)
    pairs = [f"{left} {right}" for left, right in itertools.pairwise(words)]
    letters = [f"#{word[at : at + 4]}" for word in words for at in range(len(word) - 3)]
    for feature in (*words, *pairs, *letters):
        found[feature] = found.get(feature, 0) + 1
    return found


def _kind(feature: str) -> float:
    if feature[0] == "#":
        return LETTERS
    return PAIR if " " in feature else STEM


__all__ = ["ChunkRanker", "PortableTextEmbedder", "Ranked", "VectorRanker", "WordRanker"]

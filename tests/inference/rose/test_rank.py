"""Ranking chunks: by portable vectors, by an embedding model, by shared words."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.slow_search import SlowSearch, deps

from engine.core.config import Config, RoseSection
from engine.core.errors import ConfigError
from engine.core.protocols import TextVectors
from inference.rose.make import make_rose
from inference.rose.rank import PortableTextEmbedder, VectorRanker, WordRanker
from inference.rose.text import Chunk
from inference.segmenters.deps import InferenceDeps

QUESTION = "Which sailor in the image won the harbour regatta?"
CHUNKS = [
    Chunk("https://a.example/1", "Council", ("The council met on Monday.", "Budgets were discussed at length.")),
    Chunk(
        "https://a.example/2", "Regatta", ("Ada Brook won the harbour regatta.", "She has sailed since she was six.")
    ),
    Chunk("https://a.example/3", "Harbour works", ("The harbour gets a new wall.", "Work begins in spring.")),
    Chunk("https://a.example/4", "Sailing", ("Sailors trained before the regattas.",)),
]


@pytest.mark.parametrize("ranker", [VectorRanker(PortableTextEmbedder()), WordRanker()], ids=["vectors", "words"])
async def test_the_telling_chunk_comes_first(ranker: VectorRanker | WordRanker) -> None:
    found = await ranker.rank(QUESTION, CHUNKS, limit=3)
    assert found.chunks[0].url == "https://a.example/2"
    assert len(found.chunks) <= 3
    assert list(found.chunks) == sorted(found.chunks, key=lambda chunk: -chunk.score)
    assert found.chunks[0].score > 0
    assert (await ranker.rank(QUESTION, [], limit=3)).chunks == ()


async def test_letters_bring_words_of_one_root_together() -> None:
    by_vectors = await VectorRanker(PortableTextEmbedder()).rank("who sailed", CHUNKS[::3], limit=4)
    assert by_vectors.chunks[0].url == "https://a.example/4"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_portable_vectors_are_of_length_one_or_nothing_and_always_the_same(texts: list[str]) -> None:
    embedder = PortableTextEmbedder()
    first, second = (asyncio.run(embedder.embed(texts)).vectors for _ in range(2))
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, second)
    lengths = np.linalg.norm(first, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


class Told:
    """An embedding model of two dimensions that costs something."""

    name = "told"

    async def embed(self, texts: list[str]) -> TextVectors:
        rows = [[1.0, 0.0] if "wall" in text or text == QUESTION else [-0.6, 0.8] for text in texts]
        return TextVectors(np.array(rows, np.float32), tokens=11, usd=0.25)


async def test_a_models_vectors_decide_and_their_cost_is_told() -> None:
    found = await VectorRanker(Told()).rank(QUESTION, CHUNKS, limit=4)
    # what points away is left out
    assert [chunk.url for chunk in found.chunks] == ["https://a.example/3"]
    assert (found.cost.usd, found.cost.tokens_in) == (0.25, 11)


async def test_the_config_names_the_ranker_and_what_it_lacks() -> None:
    search = SlowSearch(latency_s=0.0)

    def named(embedder: str, wired: InferenceDeps) -> str:
        rose = make_rose("portable", Config(rose=RoseSection(answerer="extract", embedder=embedder)), deps=wired)  # type: ignore[arg-type]
        assert rose.irag is not None
        return rose.irag.ranker.name

    wired = deps(search)
    assert named("portable", wired) == PortableTextEmbedder.name
    assert named("words", wired) == WordRanker.name
    with pytest.raises(ConfigError, match="embed_model"):
        named("openai", wired)

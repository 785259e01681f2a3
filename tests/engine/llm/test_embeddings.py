"""Text embeddings against a real server: order, paying once, waiting, stopping, and doing without the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.llm_server import Body, LlmServer, Scripted

from engine.core.config import LlmSection
from engine.core.errors import BudgetSpent, ConfigError, QuotaExhausted, TerminalError, TransientError
from engine.core.protocols import TextVectors
from engine.llm.embeddings import BATCH, MAX_CHARS, OpenAIEmbedder
from engine.llm.ledger import Ledger


def vector(text: str) -> list[float]:
    """Made of the text's letters; not of length one."""
    return [float(text.count(letter)) + 0.5 for letter in "abcdefgh"]


def embeddings(body: Body, *, shuffled: bool = True) -> Scripted:
    rows = [{"object": "embedding", "index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    return Scripted(body={"object": "list", "data": rows[::-1] if shuffled else rows, "usage": {"prompt_tokens": 7}})


def section(server: LlmServer | str, **more: Any) -> LlmSection:
    url = server if isinstance(server, str) else server.url
    return LlmSection(**{"base_url": url, "model": "m", "backoff_s": 0.3, "patience_s": 3.0, **more})


def make(server: LlmServer | str, cache: Path, **more: Any) -> OpenAIEmbedder:
    told = {key: more.pop(key) for key in ("offline", "ledger", "base_url", "api_key") if key in more}
    settings = {"api_key": "test-key", **told}
    return OpenAIEmbedder(section(server, **more), model="embed-1", cache=cache, **settings)


async def embed(server: LlmServer | str, cache: Path, texts: list[str], **more: Any) -> TextVectors:
    async with make(server, cache, **more) as embedder:
        return await embedder.embed(texts)


def damage(folder: Path) -> None:
    for path in folder.rglob("*.json"):
        path.write_text('{"vector": [1.0')


def stored(folder: Path) -> int:
    return len(list(folder.rglob("*.json")))


async def test_unit_vectors_in_the_order_of_the_texts_and_each_paid_once(tmp_path: Path) -> None:
    texts = ["abba", "cafe", "abba", "deaf ear"]
    with LlmServer(reply=embeddings) as server:
        first = await embed(server, tmp_path, texts, prices={"embed-1": (1.0, 0.0)})
        again = await embed(server, tmp_path, [*texts, "gag"])
        assert server.bodies[0]["input"] == ["abba", "cafe", "deaf ear"]
        assert server.bodies[1]["input"] == ["gag"]
        assert server.bodies[0]["encoding_format"] == "float"
    assert first.vectors.shape == (4, 8)
    assert first.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(first.vectors, axis=1), 1.0, atol=1e-6)
    want = np.array(vector("cafe"))
    np.testing.assert_allclose(first.vectors[1], want / np.linalg.norm(want), atol=1e-6)
    assert (first.tokens, first.usd) == (7, pytest.approx(7e-6))
    np.testing.assert_array_equal(again.vectors[:4], first.vectors)


async def test_what_is_under_way_is_not_sent_again(tmp_path: Path) -> None:
    with LlmServer(reply=embeddings, latency_s=0.1) as server:
        async with make(server, tmp_path) as embedder:
            found = await asyncio.gather(*(embedder.embed(["abba", f"text {n}"]) for n in range(6)))
        sent = [text for body in server.bodies for text in body["input"]]
    assert sorted(sent) == sorted({"abba", *(f"text {n}" for n in range(6))})
    assert all(np.array_equal(one.vectors[0], found[0].vectors[0]) for one in found)


async def test_many_texts_go_in_several_requests(tmp_path: Path) -> None:
    texts = [f"{'abc' * (n % 7)} {n}" for n in range(BATCH + 9)]
    with LlmServer(reply=embeddings) as server:
        found = await embed(server, tmp_path, texts)
    assert [len(body["input"]) for body in server.bodies] == [BATCH, 9]
    assert found.tokens == 14
    want = np.array(vector(texts[-1]))
    np.testing.assert_allclose(found.vectors[-1], want / np.linalg.norm(want), atol=1e-6)


async def test_stored_vectors_need_no_server_and_no_key(tmp_path: Path) -> None:
    with LlmServer(reply=embeddings) as server:
        first = await embed(server, tmp_path, ["abba", "cafe"])
        url = server.url
    again = await embed(url, tmp_path, ["abba", "cafe"], offline=True, api_key=None)
    np.testing.assert_array_equal(again.vectors, first.vectors)
    assert (again.tokens, again.usd) == (0, 0.0)
    with pytest.raises(TransientError, match="offline, and openai:embed-1 was never asked"):
        await embed(url, tmp_path, ["new"], offline=True, api_key=None)


async def test_a_damaged_record_is_asked_for_again(tmp_path: Path) -> None:
    with LlmServer(reply=embeddings) as server:
        first = await embed(server, tmp_path, ["abba"])
        damage(tmp_path)
        again = await embed(server, tmp_path, ["abba"])
        assert server.answered == 2
    np.testing.assert_array_equal(again.vectors, first.vectors)


async def test_a_busy_server_is_waited_for(tmp_path: Path) -> None:
    script = [Scripted(429, {"error": {"message": "slow down"}}, {"retry-after": "0.2"}), Scripted(503, "busy")]
    with LlmServer(reply=lambda body: script.pop(0) if script else embeddings(body)) as server:
        found = await embed(server, tmp_path, ["abba"])
    assert found.vectors.shape == (1, 8)


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (Scripted(401, {"error": {"message": "no"}}), ConfigError, "refuses the key"),
        (Scripted(404, {"error": {"message": "no model"}}), ConfigError, "embed_model and embed_url"),
        (Scripted(429, {"error": {"code": "insufficient_quota"}}), QuotaExhausted, "no quota left"),
        (Scripted(400, {"error": {"message": "bad input"}}), TerminalError, "does not take the texts"),
        (Scripted(500, "down"), TransientError, "gave no answer in"),
        (Scripted(200, {"data": []}), TerminalError, "another shape"),
        (Scripted(200, {"data": [{"index": 0, "embedding": ["x"]}]}), TerminalError, "another shape"),
        (Scripted(200, "<html>"), TerminalError, "another shape"),
    ],
)
async def test_what_goes_wrong_is_told(tmp_path: Path, answer: Scripted, error: type[Exception], told: str) -> None:
    with LlmServer(reply=lambda _: answer) as server, pytest.raises(error, match=told):
        await embed(server, tmp_path, ["abba"], patience_s=0.5)
    assert stored(tmp_path) == 0


async def test_a_limit_in_money_holds_for_embeddings_too(tmp_path: Path) -> None:
    with LlmServer(reply=embeddings) as server:
        with pytest.raises(ConfigError, match="price of 'embed-1' is not known"):
            make(server, tmp_path, max_usd=1.0)
        ledger = Ledger.of(section(server, max_usd=1e-9, prices={"embed-1": (1.0, 0.0)}))
        with pytest.raises(BudgetSpent, match="limit"):
            await embed(server, tmp_path, ["abba"], ledger=ledger)
        assert server.answered == 0


async def test_odd_texts_are_cut_and_mended(tmp_path: Path) -> None:
    with LlmServer(reply=embeddings) as server:
        found = await embed(server, tmp_path, ["a" * 20_000, "half \ud83d a pair", ""])
        sent = server.bodies[0]["input"]
    assert [len(text) for text in sent] == [MAX_CHARS, len("half ? a pair"), 0]
    assert found.vectors.shape == (3, 8)


async def test_a_model_that_changed_behind_its_name_is_told(tmp_path: Path) -> None:
    def short(body: Body) -> Scripted:
        rows = [{"index": n, "embedding": [1.0, 2.0]} for n in range(len(body["input"]))]
        return Scripted(body={"data": rows})

    with LlmServer(reply=embeddings) as server:
        await embed(server, tmp_path, ["abba"])
        server.reply = short
        with pytest.raises(TerminalError, match="vectors of several lengths"):
            await embed(server, tmp_path, ["abba", "cafe"])


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    build: Callable[..., OpenAIEmbedder] = OpenAIEmbedder
    with pytest.raises(ConfigError, match="embed_model"):
        build(LlmSection(), model="", api_key="k", cache=tmp_path)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        build(LlmSection(), model="e", api_key=None, cache=tmp_path)

"""An endpoint that is no model endpoint, now or at all: told from items that it cannot digest, and said in time."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import LlmServer, Scripted, completion, completion_body

from engine.core.config import LlmSection
from engine.core.errors import ConfigError, TransientError
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm.batch import BatchQueue
from engine.llm.client import OpenAIChat

PORTAL = Scripted(body="<!doctype html><html>Please log in</html>", headers={"content-type": "text/html"})
USELESS = {
    "HTML": PORTAL,
    "something that is not a JSON object": Scripted(body="\x00\x01\x02\x7f garbage \ufffd"),
    "an empty body": Scripted(body=""),
    "JSON without a reply in it": Scripted(body={"choices": []}),
    "replies without content": Scripted(body=completion_body(None)),
    "HTTP 400: cannot": Scripted(400, {"error": {"message": "cannot"}}),
}


def chat(url: str, cache: Path, **more: Any) -> OpenAIChat:
    config = LlmSection(**{"base_url": url, "model": "test-model", "backoff_s": 0.3, "patience_s": 20.0, **more})
    return OpenAIChat(config, api_key="test-key", cache=cache)


def about(number: int) -> ChatRequest:
    return ChatRequest("system", f"item {number}")


def bad_items(*names: str, otherwise: Scripted | None = None) -> Any:
    """Answers the items named with a portal, the others well."""
    good = otherwise or completion("fine")
    return lambda body: PORTAL if body["messages"][1]["content"] in {f"item {name}" for name in names} else good


def stored(folder: Path) -> list[Path]:
    return list(folder.rglob("*.json"))


async def all_of(client: OpenAIChat, count: int) -> list[ChatReply]:
    return await asyncio.gather(*(client.complete(about(number)) for number in range(count)))


@pytest.mark.parametrize("what", USELESS)
async def test_nothing_but_unusable_answers_ends_the_work(what: str, tmp_path: Path) -> None:
    """Nothing of it is stored: when the endpoint is one, everything is asked again."""
    with LlmServer(reply=lambda body: USELESS[what]) as server:
        async with chat(server.url, tmp_path) as client:
            with pytest.raises(TransientError, match=rf"answers with {what}.*not with chat completions.*base_url"):
                await all_of(client, 12)
        assert server.answered <= 36
    assert stored(tmp_path) == []


@pytest.mark.parametrize("what", USELESS)
async def test_a_few_items_are_judged_at_the_end(what: str, tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: USELESS[what]) as server:
        async with chat(server.url, tmp_path) as client:
            (reply,) = await all_of(client, 1)
            assert reply.status in ("error", "empty")
            assert client.doubtful
            with pytest.raises(TransientError, match=f"answers with {what}"):
                await client.vouch()
    assert stored(tmp_path) == []


async def test_bad_items_among_good_ones_are_their_own_loss(tmp_path: Path) -> None:
    """Also many in a row, also when a later run meets only those: it looks at a good one once more."""
    bad = [str(number) for number in range(6)]
    with LlmServer(reply=bad_items(*bad)) as server:
        for _ in range(2):
            async with chat(server.url, tmp_path, max_in_flight=1) as client:
                assert (await client.complete(about(99))).status == "ok"
                replies = await all_of(client, 6)
                await client.vouch()
                assert not client.doubtful
            assert [reply.status for reply in replies] == ["error"] * 6
        assert server.answered <= 2 * (6 * 3 + 3) + 1


async def test_a_portal_in_the_middle_of_the_work(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion("fine")) as server:
        async with chat(server.url, tmp_path) as client:
            await all_of(client, 5)
            server.reply = lambda body: PORTAL
            with pytest.raises(TransientError, match="answers with HTML"):
                await all_of(client, 15)
        server.reply = lambda body: completion("fine")
        before = server.answered
        async with chat(server.url, tmp_path) as client:
            assert {reply.status for reply in await all_of(client, 15)} == {"ok"}
        assert server.answered == before + 10


async def test_a_model_that_says_nothing_once_is_stored_with_the_rest(tmp_path: Path) -> None:
    silent = completion(None)
    with LlmServer(
        reply=lambda body: silent if body["messages"][1]["content"] == "item 0" else completion("x")
    ) as server:
        async with chat(server.url, tmp_path) as client:
            assert (await client.complete(about(0))).status == "empty"
            assert (await client.complete(about(1))).status == "ok"
            await client.vouch()
        async with chat(server.url, tmp_path) as client:
            assert (await client.complete(about(0))).from_cache
        assert server.answered == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_no_wrong_key(status: int, tmp_path: Path) -> None:
    with LlmServer(key="of the portal") as portal:
        away = Scripted(status, "", headers={"location": f"http://127.0.0.1:{portal.port}/login?next=secret"})
        with LlmServer(reply=lambda body: away) as server:
            async with chat(server.url, tmp_path) as client:
                with pytest.raises(ConfigError, match=f"redirects to 127.0.0.1:{portal.port}.*base_url") as caught:
                    await client.complete(about(0))
    assert "key" not in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_redirect_without_end(tmp_path: Path) -> None:
    with LlmServer() as server:
        server.reply = lambda body: Scripted(307, "", headers={"location": f"{server.url}/chat/completions"})
        async with chat(server.url, tmp_path) as client:
            with pytest.raises(ConfigError, match="redirects to 127"):
                await client.complete(about(0))


async def test_a_redirect_that_keeps_the_request_is_followed(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion("fine")) as real:
        moved = Scripted(308, "", headers={"location": f"{real.url}/chat/completions"})
        # the key goes to the same host only
        with LlmServer(reply=lambda body: moved) as server:
            async with chat(server.url, tmp_path) as client:
                with pytest.raises(ConfigError, match="redirects"):
                    await client.complete(about(0))
        moves = iter([Scripted(308, "", headers={"location": f"{real.url}/chat/completions"}), completion("fine")])
        real.reply = lambda body: next(moves)
        async with chat(real.url, tmp_path) as client:
            assert (await client.complete(about(0))).status == "ok"


@pytest.mark.parametrize("kind", ["unreachable", "500", "dropped"])
async def test_silence_is_said_once_and_soon(kind: str, tmp_path: Path) -> None:
    answer = Scripted(500, {"error": {"message": "out of order"}}) if kind == "500" else Scripted(drop=True)
    told: list[str] = []
    with LlmServer(reply=lambda body: answer) as server:
        url = server.url
        if kind == "unreachable":
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        async with chat(url, tmp_path, patience_s=3.0) as client:
            client.silence.tell = told.append
            with pytest.raises(TransientError, match="gave no answer"):
                await all_of(client, 3)
    (line,) = told
    assert url in line
    assert ("out of order" if kind == "500" else "no connection") in line
    assert "trying again in" in line
    assert "giving up in" in line


async def test_one_failed_try_is_not_worth_a_word(tmp_path: Path) -> None:
    told: list[str] = []
    with LlmServer(script=[Scripted(500, {}), completion("a"), Scripted(500, {}), completion("b")]) as server:
        async with chat(server.url, tmp_path) as client:
            client.silence.tell = told.append
            for number in range(2):
                await client.complete(about(number))
    assert told == []


@pytest.mark.parametrize("body", ["<html>log in</html>", "", ["a", "list"], {"no": "id"}, "\x00\x01"])
@pytest.mark.parametrize("named", ["text/html", "application/json"])
async def test_a_batch_service_that_is_none_is_a_setting(body: Any, named: str, tmp_path: Path) -> None:
    def handle(*_: object) -> tuple[int, Any]:
        return 200, body

    with LlmServer() as server:
        server.batches.handle = handle  # type: ignore[method-assign, assignment]
        async with chat(server.url, tmp_path / "llm") as client:
            queue = BatchQueue(client, folder=tmp_path / "batches")
            for _ in range(2):  # the second time looks for what may have been made
                with pytest.raises(ConfigError, match="does it have a Batch API"):
                    await queue.advance({"a" * 64: about(0)})

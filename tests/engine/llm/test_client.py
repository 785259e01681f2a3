"""The chat client against a real server: dialects, waiting, stopping, the cache and the number under way."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import LlmServer, Scripted, completion, completion_body, response_body

from engine.core.config import LlmSection
from engine.core.errors import ConfigError, QuotaExhausted, TransientError
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm.client import OpenAIChat

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
GOOD = '{"n": 1}'


def settings(server: LlmServer | str, **more: Any) -> LlmSection:
    url = server if isinstance(server, str) else server.url
    return LlmSection(**{"base_url": url, "model": "test-model", "backoff_s": 0.3, "patience_s": 5.0, **more})


def chat(server: LlmServer | str, cache: Path, **more: Any) -> OpenAIChat:
    return OpenAIChat(settings(server, **more), api_key="test-key", cache=cache)


async def ask(server: LlmServer | str, cache: Path, text: str = "hello", **more: Any) -> ChatReply:
    async with chat(server, cache, **more) as client:
        return await client.complete(ChatRequest("system", text, SCHEMA))


def damage(folder: Path) -> None:
    for path in folder.rglob("*.json"):
        path.write_text('{"reply": {"status": "ok"')


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------- how it asks


async def test_strict_schema_first(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD)) as server:
        reply = await ask(server, tmp_path)
    assert reply.status == "ok"
    assert reply.data == {"n": 1}
    told = server.bodies[0]["response_format"]
    assert told["type"] == "json_schema"
    assert told["json_schema"]["strict"] is True
    assert told["json_schema"]["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("takes", "last"),
    [
        (("json_object", "schema", "plain"), {"type": "json_object", "schema": SCHEMA}),
        (("json_object", "plain"), {"type": "json_object"}),
        (("plain",), None),
    ],
)
async def test_falls_back_to_what_the_server_takes(tmp_path: Path, takes: tuple[str, ...], last: Any) -> None:
    """The schema is then said in words, and the way found is kept for the next request."""
    with LlmServer(reply=lambda body: completion(GOOD), takes=takes) as server:
        async with chat(server, tmp_path) as client:
            first = await client.complete(ChatRequest("system", "one", SCHEMA))
            asked = server.begun
            second = await client.complete(ChatRequest("system", "two", SCHEMA))
    assert (first.status, second.status) == ("ok", "ok")
    assert server.begun == asked + 1
    body = server.bodies[-1]
    assert body.get("response_format") == last
    assert '"required": ["n"]' in body["messages"][0]["content"]


async def test_renamed_and_refused_parameters(tmp_path: Path) -> None:
    def reply(body: Any) -> Scripted:
        if "max_tokens" in body:
            return Scripted(400, {"error": {"message": "Use 'max_completion_tokens' instead of 'max_tokens'."}})
        if "temperature" in body:
            return Scripted(400, {"error": {"message": "Unsupported value: 'temperature' does not support 0."}})
        return completion(GOOD)

    with LlmServer(reply=reply) as server:
        assert (await ask(server, tmp_path)).status == "ok"
    assert server.bodies[-1]["max_completion_tokens"] == 1024


async def test_responses_endpoint(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: Scripted(body=response_body(GOOD))) as server:
        reply = await ask(server, tmp_path, api="responses")
    assert (reply.status, reply.data, reply.tokens_in, reply.tokens_out) == ("ok", {"n": 1}, 400, 120)
    body = server.bodies[0]
    assert body["text"]["format"]["type"] == "json_schema"
    assert body["max_output_tokens"] == 1024


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "truncated"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "filtered"),
        ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}, "refused"),
        ({"output": []}, "empty"),
        ({"status": "failed", "error": {"message": "boom"}}, "error"),
    ],
)
async def test_responses_reply_kinds(tmp_path: Path, change: dict[str, Any], status: str) -> None:
    with LlmServer(reply=lambda body: Scripted(body={**response_body(GOOD), **change})) as server:
        assert (await ask(server, tmp_path, api="responses")).status == status


async def test_pictures_travel_as_data_urls(tmp_path: Path) -> None:
    request = ChatRequest("s", "u", SCHEMA, images=(b"\x89PNG....", b"\xff\xd8\xff..."))
    with LlmServer(reply=lambda body: completion(GOOD)) as server:
        async with chat(server, tmp_path, sees_images=True) as client:
            await client.complete(request)
        async with chat(server, tmp_path) as blind:
            await blind.complete(request)
    assert server.bodies[1]["messages"][1]["content"] == "u"
    content = server.bodies[0]["messages"][1]["content"]
    kinds = [part["image_url"]["url"].split(";")[0] for part in content if part["type"] == "image_url"]
    assert kinds == ["data:image/png", "data:image/jpeg"]


# ---------------------------------------------------------------- waiting and stopping


async def test_waits_as_long_as_told_and_everyone_with_it(tmp_path: Path) -> None:
    """One request meets the limit; none is sent before its time is over."""
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def reply(body: Any) -> Scripted:
        times.append(loop.time())
        if len(times) == 1:
            return Scripted(429, {"error": {"code": "rate_limit_exceeded"}}, {"retry-after-ms": "700"})
        return completion(GOOD)

    with LlmServer(reply=reply) as server:
        async with chat(server, tmp_path, max_in_flight=1) as client:
            replies = await asyncio.gather(*(client.complete(ChatRequest("s", str(n), SCHEMA)) for n in range(3)))
    assert [item.status for item in replies] == ["ok"] * 3
    assert times[1] - times[0] >= 0.7


async def test_no_quota_stops_at_once(tmp_path: Path) -> None:
    told = Scripted(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}})
    with LlmServer(reply=lambda body: told) as server:
        async with chat(server, tmp_path, max_in_flight=1) as client:
            found = await asyncio.gather(
                *(client.complete(ChatRequest("s", str(n), SCHEMA)) for n in range(20)), return_exceptions=True
            )
    assert all(isinstance(item, QuotaExhausted) for item in found)
    assert server.begun == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_named_not_shown(tmp_path: Path, status: int) -> None:
    told = Scripted(status, {"error": {"message": "Incorrect API key provided: test-key"}})
    with LlmServer(reply=lambda body: told) as server, pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        await ask(server, tmp_path)
    assert "test-key" not in str(caught.value)


async def test_an_unknown_model_stops(tmp_path: Path) -> None:
    told = Scripted(404, {"error": {"code": "model_not_found", "message": "The model does not exist"}})
    with LlmServer(reply=lambda body: told) as server, pytest.raises(ConfigError, match="test-model"):
        await ask(server, tmp_path)


async def test_an_unreachable_endpoint_is_transient(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(TransientError, match="gave no answer in 1 tries"):
            await ask(url, tmp_path, patience_s=0)


async def test_a_wait_beyond_patience_is_transient(tmp_path: Path) -> None:
    told = Scripted(429, {"error": {"code": "rate_limit_exceeded"}}, {"retry-after": "3000"})
    with LlmServer(reply=lambda body: told) as server, pytest.raises(TransientError, match="3000 s"):
        await ask(server, tmp_path)
    assert server.begun == 1


async def test_a_poisonous_request_is_given_up_alone(tmp_path: Path) -> None:
    """An endpoint that answers others is not down: the one request is lost, not the run."""

    def reply(body: Any) -> Scripted:
        poison = "poison" in body["messages"][1]["content"]
        return Scripted(500, {"error": {"message": "boom"}}) if poison else completion(GOOD)

    with LlmServer(reply=reply) as server:
        async with chat(server, tmp_path, patience_s=1.0) as client:

            async def others() -> None:
                for number in range(8):
                    await client.complete(ChatRequest("s", f"fine {number}", SCHEMA))
                    await asyncio.sleep(0.1)

            poisoned, _ = await asyncio.gather(client.complete(ChatRequest("s", "poison", SCHEMA)), others())
    assert poisoned.status == "error"
    assert "boom" in poisoned.detail


async def test_dropped_connections_are_tried_again(tmp_path: Path) -> None:
    with LlmServer(script=[Scripted(drop=True), Scripted(502, "<html>bad gateway</html>"), completion(GOOD)]) as server:
        assert (await ask(server, tmp_path)).status == "ok"
    assert server.begun == 3


async def test_too_long_is_told_to_the_caller(tmp_path: Path) -> None:
    told = Scripted(400, {"error": {"code": "context_length_exceeded", "message": "maximum context length is 8192"}})
    with LlmServer(reply=lambda body: told) as server:
        assert (await ask(server, tmp_path)).status == "too_long"
    assert server.begun == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [({"model": ""}, "model is empty"), ({"base_url": "ftp://x"}, "not the address")],
)
def test_bad_settings(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OpenAIChat(settings("http://127.0.0.1:1/v1", **change), api_key="k", cache=tmp_path)


def test_a_missing_key_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        OpenAIChat(settings("http://127.0.0.1:1/v1"), api_key=None, cache=tmp_path)


def test_the_address_of_the_environment(tmp_path: Path) -> None:
    config = LlmSection(model="m")
    client = OpenAIChat(config, api_key="k", cache=tmp_path, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert client.endpoint.url == "http://127.0.0.1:9/v1"
    assert OpenAIChat(config, api_key="k", cache=tmp_path, environ={}).endpoint.url == "https://api.openai.com/v1"


# ---------------------------------------------------------------- cache and flight


async def test_a_reply_is_paid_once(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD)) as server:
        first = await ask(server, tmp_path)
        second = await ask(server, tmp_path)
        other = await ask(server, tmp_path, temperature=0.5)
    assert (first.from_cache, second.from_cache, other.from_cache) == (False, True, False)
    assert second.data == first.data
    assert second.usd == 0
    assert server.answered == 2


async def test_refusals_and_cut_replies_are_kept_too(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(None, refusal="No.")) as server:
        await ask(server, tmp_path)
        again = await ask(server, tmp_path)
    assert (again.status, again.from_cache, server.answered) == ("refused", True, 1)


async def test_a_damaged_cache_file_is_no_reply(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD)) as server:
        await ask(server, tmp_path)
        damage(tmp_path)
        assert (await ask(server, tmp_path)).status == "ok"
    assert server.answered == 2


async def test_the_same_request_twice_at_a_time_is_sent_once(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD), latency_s=0.2) as server:
        async with chat(server, tmp_path) as client:
            request = ChatRequest("s", "u", SCHEMA)
            replies = await asyncio.gather(*(client.complete(request) for _ in range(5)))
    assert [item.status for item in replies] == ["ok"] * 5
    assert server.answered == 1


async def test_at_most_so_many_under_way(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD), latency_s=0.1) as server:
        async with chat(server, tmp_path, max_in_flight=4) as client:
            await asyncio.gather(*(client.complete(ChatRequest("s", str(n), SCHEMA)) for n in range(24)))
    assert server.most_in_flight == 4
    assert server.answered == 24


async def test_purpose_is_no_part_of_the_digest(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: Scripted(body=completion_body(GOOD))) as server:
        async with chat(server, tmp_path) as client:
            await client.complete(ChatRequest("s", "u", SCHEMA, purpose="ask.write"))
            again = await client.complete(ChatRequest("s", "u", SCHEMA, purpose="irag"))
    assert again.from_cache


async def test_no_key_on_disk(tmp_path: Path) -> None:
    with LlmServer(reply=lambda body: completion(GOOD)) as server:
        await ask(server, tmp_path)
    assert b"test-key" not in contents(tmp_path)


async def test_standing_in_the_queue_uses_up_no_patience(tmp_path: Path) -> None:
    """A slow model answers one at a time; the last in the row meets a hiccup and is asked again all the same."""
    seen: list[str] = []

    def reply(body: Any) -> Scripted:
        text = body["messages"][1]["content"]
        seen.append(text)
        if text == "number 5" and seen.count(text) == 1:
            return Scripted(503, {"error": {"message": "busy"}})
        return completion(GOOD)

    with LlmServer(reply=reply, latency_s=0.4) as server:
        async with chat(server, tmp_path, max_in_flight=1, patience_s=1.2) as client:
            found = await asyncio.gather(
                *(client.complete(ChatRequest("system", f"number {n}", SCHEMA)) for n in range(6))
            )
        assert server.most_in_flight == 1
    assert [item.status for item in found] == ["ok"] * 6
    assert seen.count("number 5") == 2

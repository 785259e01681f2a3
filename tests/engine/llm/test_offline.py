"""Replies that were paid for, without the endpoint that gave them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.llm_server import LlmServer, completion

from engine.core.config import LlmSection
from engine.core.errors import TransientError
from engine.core.protocols import ChatRequest
from engine.llm.client import OpenAIChat
from engine.llm.offline import RecordedChat


async def test_stored_replies_are_given_and_others_are_an_error(tmp_path: Path) -> None:
    asked = ChatRequest("system", "hello", purpose="rose.map")
    with LlmServer(reply=lambda _: completion("well")) as server:
        section = LlmSection(base_url=server.url, model="m", max_usd=1.0, prices={"m": (1.0, 1.0)})
        async with OpenAIChat(section, api_key="test-key", cache=tmp_path) as chat:
            first = await chat.complete(asked)
    # no key, no price, no server; limits do not hold for what costs nothing
    bare = section.model_copy(update={"prices": {}, "max_tokens": 1})
    async with RecordedChat(bare, cache=tmp_path) as recorded:
        again = await recorded.complete(asked)
        assert (again.text, again.status, again.from_cache, again.usd) == (first.text, "ok", True, 0.0)
        with pytest.raises(TransientError, match=r"offline, and the model 'm' was never asked this for rose.map"):
            await recorded.complete(ChatRequest("system", "something else", purpose="rose.map"))

"""Replies that were paid for before, and no others: a finished run is repeated without its endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.core.config import LlmSection
from engine.core.errors import TransientError
from engine.core.protocols import ChatReply, ChatRequest
from engine.llm.client import OpenAIChat


class RecordedChat(OpenAIChat):
    """The chat model of a config as its stored replies know it; it needs no key and opens no connection.

    Raises `TransientError` for a request that has no stored reply.
    """

    def __init__(self, config: LlmSection, *, cache: Path) -> None:
        free = config.model_copy(update={"max_usd": None, "monthly_usd": None, "max_tokens": None})
        super().__init__(free, api_key="offline", cache=cache)

    async def _ask(self, request: ChatRequest) -> tuple[ChatReply, dict[str, Any] | None]:
        purpose = f" for {request.purpose}" if request.purpose else ""
        raise TransientError(f"offline, and the model '{self.name}' was never asked this{purpose}: go online once")

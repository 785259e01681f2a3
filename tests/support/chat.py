"""A chat model that says what it is told."""

from __future__ import annotations

from engine.core.protocols import ChatReply, ChatRequest


class KeptChat:
    """Gives one reply to everything and keeps the requests."""

    def __init__(self, reply: ChatReply, *, name: str = "kept") -> None:
        self.name = name
        self.reply = reply
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return self.reply

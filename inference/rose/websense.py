"""WebSense: does this question need the web at all?

Two levels, as the paper has them; its rules and prompt are not published, these are ours. Rules first: words of time,
office, release and events, and names, speak for retrieval; looks, places in the picture and general use of things
speak against it. What both or neither speak for goes to a chat model, and without one to retrieval, because a needless
search costs a second and a missing one costs the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.core.protocols import ChatModel, ChatRequest
from engine.llm.prompts import load_prompt
from inference.rose.cost import Cost, cost_of
from inference.rose.rules import by_rules

PROMPT = "websense_v1"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether retrieval is needed, who decided, and why in words."""

    needed: bool
    by: Literal["rules", "model", "default"]
    reason: str
    cost: Cost = field(default_factory=Cost)


class WebSense:
    """Decides for one question; `chat` may be None, then the unclear ones are retrieved."""

    def __init__(self, chat: ChatModel | None = None) -> None:
        self.chat = chat

    async def decide(self, question: str) -> Verdict:
        needed, reason = by_rules(question)
        if needed is not None:
            return Verdict(needed=needed, by="rules", reason=reason)
        if self.chat is None:
            return Verdict(needed=True, by="default", reason=f"unclear and no model to ask; {reason}")
        system, user = load_prompt("inference.rose", PROMPT).fill(question=question)
        reply = await self.chat.complete(
            ChatRequest(
                system=system,
                user=user,
                schema={
                    "type": "object",
                    "properties": {"needs_search": {"type": "boolean"}, "reason": {"type": "string"}},
                    "required": ["needs_search", "reason"],
                    "additionalProperties": False,
                },
                schema_name="websense",
                max_tokens=200,
                purpose="rose.websense",
            )
        )
        said = (reply.data or {}).get("needs_search")
        if reply.status != "ok" or not isinstance(said, bool):
            told = f"the model's reply is {reply.status if reply.status != 'ok' else 'without a verdict'}; {reason}"
            return Verdict(needed=True, by="default", reason=told, cost=cost_of(reply))
        told = str((reply.data or {}).get("reason", ""))
        return Verdict(needed=said, by="model", reason=told, cost=cost_of(reply))

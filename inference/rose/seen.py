"""What an image shows, by name, from a chat model that sees: the other choice beside web detection.

Like web detection it only picks among candidates that retrieval found, it gives no answers. The paper took web
detection because models do not know new names; a refusal or a reply that cannot be read names nothing and is no error.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.geometry import Image
from engine.core.images import encode_jpeg
from engine.core.protocols import ChatModel, ChatRequest
from engine.llm.prompts import load_prompt
from engine.web.search.vision import MAX_ENTITIES, ImageEntity

PROMPT = "entities_v1"
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "confidence": {"type": "number"}},
                "required": ["confidence", "name"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["entities"],
    "additionalProperties": False,
}


class ChatEntities:
    """`ImageEntities` over a chat model that takes images; its replies are recorded by the model's own cache."""

    def __init__(self, chat: ChatModel) -> None:
        self.name = f"vision-model:{chat.name}"
        self.chat = chat

    async def entities(self, image: Image) -> list[ImageEntity]:
        """Names, surest first; none where the model gives none."""
        system, user = load_prompt("inference.rose", PROMPT).fill()
        reply = await self.chat.complete(
            ChatRequest(
                system=system,
                user=user,
                schema=_SCHEMA,
                schema_name="entities",
                images=(encode_jpeg(image, quality=90),),
                max_tokens=400,
                purpose="rose.entities",
            )
        )
        listed = (reply.data or {}).get("entities") if reply.status == "ok" else None
        found: dict[str, float] = {}
        for entry in listed if isinstance(listed, list) else []:
            name = " ".join(str(entry.get("name", "")).split()) if isinstance(entry, dict) else ""
            sure = entry.get("confidence") if isinstance(entry, dict) else None
            if name and isinstance(sure, int | float) and not isinstance(sure, bool):
                found[name] = max(found.get(name, 0.0), min(1.0, max(0.0, float(sure))))
        ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        return [ImageEntity(name=name, score=score) for name, score in ordered[:MAX_ENTITIES]]

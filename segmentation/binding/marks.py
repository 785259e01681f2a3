"""Set-of-mark: a vision model is shown numbered boxes and says which number is whom (Yang et al., arXiv:2310.11441).

Optional evidence, one request per picture. The model is told not to recognise faces, so that what it uses is what the
caption and the picture say. A reply that is refused, cut off or names a number twice tells nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from engine.core.geometry import Image
from engine.core.images import encode_jpeg
from engine.core.protocols import ChatModel, ChatReply, ChatRequest
from engine.llm.prompts import load_prompt
from segmentation.binding.candidates import Named, Scene
from segmentation.binding.evidence import Opinion
from segmentation.mask_models.portable_people import shrink

T = TypeVar("T")
PROMPT = "marks_v1"
#: Pictures are sent with at most so many pixels a side.
SIDE_PX = 1024
#: The lead of a box that the model names: it gives no measure of its certainty, so one and the same for all.
LEAD = 0.5
_COLOURS = ((230, 25, 75), (0, 130, 200), (60, 180, 75), (245, 130, 48), (145, 30, 180), (0, 160, 160), (128, 128, 0))
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["boxes"],
    "properties": {
        "boxes": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "number"],
                "properties": {"name": {"type": "string"}, "number": {"type": "integer"}},
            },
        }
    },
}


@dataclass(slots=True)
class Marks:
    """The witness of one picture; the model is asked when the first name with a choice needs it."""

    chat: ChatModel
    caption: str
    prompt: str = PROMPT
    _answer: dict[str, int] | None = None
    _said: str = field(default="")

    def opinion(self, scene: Scene, name: Named) -> Opinion | None:
        """What the model says of a name, None where there is nothing to choose or nothing was said."""
        eligible = scene.eligible(name)
        if len(eligible) < 2:
            return None
        if self._answer is None:
            self._answer, self._said = self._ask(scene)
        chosen = self._answer.get(name.entity.name, 0) - 1
        if chosen not in eligible:
            return Opinion("marks", dict.fromkeys(eligible, 0.0), 0.0, self._said)
        return Opinion("marks", {i: 1.0 if i == chosen else 1.0 - LEAD for i in eligible}, LEAD, self._said)

    def _ask(self, scene: Scene) -> tuple[dict[str, int], str]:
        prompt = load_prompt("segmentation.binding", self.prompt)
        pool = scene.pool()
        system, user = prompt.fill(
            caption=self.caption or "(none)",
            names="\n".join(f"- {name.entity.name} ({name.entity.phrase})" for name in scene.names),
            numbers=", ".join(str(index + 1) for index in pool),
        )
        request = ChatRequest(
            system=system,
            user=user,
            schema=SCHEMA,
            schema_name="boxes",
            images=(encode_jpeg(draw(scene), quality=88),),
            max_tokens=400,
            purpose="annotate",
        )
        reply = on_loop(self.chat.complete(request))
        return read_reply(reply, {name.entity.name for name in scene.names}), f"{self.chat.name}: {reply.status}"


def draw(scene: Scene) -> Image:
    """The picture with its candidate boxes; box i carries the number i + 1."""
    import cv2

    picture, scale = shrink(scene.image, SIDE_PX)
    picture = np.ascontiguousarray(picture.copy())
    thick = max(2, round(max(picture.shape[:2]) / 400))
    for index in scene.pool():
        box = scene.candidates[index].box
        colour = _COLOURS[index % len(_COLOURS)]
        x1, y1, x2, y2 = (round(value * scale) for value in (box.x1, box.y1, box.x2, box.y2))
        cv2.rectangle(picture, (x1, y1), (x2 - 1, y2 - 1), colour, thick)
        told, size = str(index + 1), thick * 0.4
        (width, height), _ = cv2.getTextSize(told, cv2.FONT_HERSHEY_SIMPLEX, size, thick)
        cv2.rectangle(picture, (x1, y1), (x1 + width + 3 * thick, y1 + height + 4 * thick), colour, -1)
        spot = (x1 + thick, y1 + height + 2 * thick)
        cv2.putText(picture, told, spot, cv2.FONT_HERSHEY_SIMPLEX, size, (255, 255, 255), thick, cv2.LINE_AA)
    return picture


def read_reply(reply: ChatReply, names: set[str]) -> dict[str, int]:
    """Numbers by name; empty for a reply that is not "ok". Numbers given to two names are given to neither."""
    if reply.status != "ok" or reply.data is None:
        return {}
    boxes = reply.data.get("boxes")
    if not isinstance(boxes, list):
        return {}
    found: dict[str, int] = {}
    for item in boxes:
        if not isinstance(item, dict):
            continue
        name, number = item.get("name"), item.get("number")
        if name not in names or not isinstance(number, int) or isinstance(number, bool) or number < 1:
            continue
        # a name that is given two boxes has none
        found[str(name)] = 0 if str(name) in found else number
    counts = [number for number in found.values() if number]
    return {name: number for name, number in found.items() if number and counts.count(number) == 1}


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, run on one event loop that lasts as long as the process.

    The stage is synchronous, chat models keep connections that belong to a loop: so they always see the same one.
    """
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="chat of annotate", daemon=True).start()
            _loops.append(loop)
    return asyncio.run_coroutine_threadsafe(coroutine, _loops[0]).result()

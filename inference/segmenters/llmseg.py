"""LLMSeg: a chat model that sees images draws the mask, without training and without a segmentation model.

Three stages. Detect: a box for what is asked. Trace: closed outlines inside the box, with holes, as points of periodic
B-splines. Refine: the model sees its outlines drawn over the crop and corrects them, until a pass changes next to
nothing or the passes are spent. Given the replies the mask is determined. The published abstract names the stages; the
prompts, the reply formats, 1000 units a side, a margin of a tenth of the box, and 0.99 IoU as "next to nothing" are
ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.core.geometry import Box, Image, Mask, mask_iou
from engine.core.images import encode_jpeg
from engine.core.protocols import ChatModel, ChatReply, ChatRequest, SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from engine.llm.prompts import load_prompt
from inference.segmenters.bridge import wait_for
from inference.segmenters.model_boxes import read_boxes
from inference.segmenters.seg_zero import failure_of_reply
from inference.segmenters.splines import Outline, draw

DETECT, TRACE, REFINE = "llmseg_detect_v1", "llmseg_trace_v1", "llmseg_refine_v1"
UNITS = 1000.0
MARGIN = 0.1
STABLE_IOU = 0.99
_NUMBER = {"type": "number"}
_POINT = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_OUTLINE = {
    "type": "object",
    "properties": {
        "points": {"type": "array", "items": _POINT},
        "corners": {"type": "array", "items": {"type": "integer"}},
        "hole": {"type": "boolean"},
    },
    "required": ["points", "corners", "hole"],
    "additionalProperties": False,
}


class _Refused(Exception):
    """A stage that gave nothing to go on with, and what the model said."""

    def __init__(self, failure: Failure, text: str = "") -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.text = text


class LlmSeg:
    """The `Segmenter`; `passes` bounds the refinement (0: the first tracing is the mask)."""

    def __init__(self, chat: ChatModel, *, passes: int = 3, max_tokens: int = 3000) -> None:
        self.name = "llmseg"
        self.chat = chat
        self.passes = passes
        self.max_tokens = max_tokens
        self._prompts = {name: load_prompt("inference.segmenters", name) for name in (DETECT, TRACE, REFINE)}

    def models(self) -> tuple[ModelRef, ...]:
        return (ModelRef(role="segmenter", name=self.chat.name, version=f"{DETECT} {TRACE} {REFINE}"),)

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request; several pictures are with the model at a time."""
        return wait_for([self._one(request) for request in requests])

    async def _one(self, request: SegmentRequest) -> SegmentResult:
        try:
            box = await self._detect(request)
            if box is None:
                empty: Mask = np.zeros(request.image.shape[:2], bool)
                return SegmentResult(mask=empty, text="the model says that nothing is there")
            mask, told = await self._trace(request, box)
        except _Refused as refused:
            return SegmentResult(mask=None, failure=refused.failure, text=refused.text)
        if not mask.any():
            failure = Failure(kind="bad_reply", detail="the outlines enclose nothing")
            return SegmentResult(mask=None, failure=failure, text=told)
        return SegmentResult(mask=mask, text=told)

    async def _detect(self, request: SegmentRequest) -> Box | None:
        """The box of what is asked (the hull of several), None if the model says that nothing is there."""
        reply = await self._ask(DETECT, request.image, None, question=request.prompt)
        height, width = request.image.shape[:2]
        found = read_boxes(reply.text, space="norm_1000", width=width, height=height)
        if found is None or (not found.objects and found.dropped):
            raise _Refused(Failure(kind="bad_reply", detail="no box can be read in the reply"), reply.text)
        boxes = [one.box for one in found.objects]
        if not boxes:
            return None
        return Box(
            min(box.x1 for box in boxes),
            min(box.y1 for box in boxes),
            max(box.x2 for box in boxes),
            max(box.y2 for box in boxes),
        )

    async def _trace(self, request: SegmentRequest, box: Box) -> tuple[Mask, str]:
        height, width = request.image.shape[:2]
        view = Box(
            box.x1 - MARGIN * box.width,
            box.y1 - MARGIN * box.height,
            box.x2 + MARGIN * box.width,
            box.y2 + MARGIN * box.height,
        ).clip(width, height)
        view = Box(float(int(view.x1)), float(int(view.y1)), float(np.ceil(view.x2)), float(np.ceil(view.y2)))
        crop = view.crop(request.image)
        reply = await self._ask(TRACE, crop, _schema(done=False), question=request.prompt)
        mask = self._draw(reply, view, box, height, width)
        told = "traced"
        for number in range(1, self.passes + 1):
            shown = overlaid(crop, mask[int(view.y1) : int(view.y2), int(view.x1) : int(view.x2)])
            reply = await self._ask(REFINE, shown, _schema(done=True), question=request.prompt)
            if (reply.data or {}).get("done") is True:
                return mask, f"traced, content after {number} passes"
            refined = self._draw(reply, view, box, height, width)
            same = mask_iou(mask, refined)
            mask = refined
            told = f"traced, refined {number} times"
            if same >= STABLE_IOU:
                return mask, f"{told}, stable"
        return mask, told

    def _draw(self, reply: ChatReply, view: Box, box: Box, height: int, width: int) -> Mask:
        outlines = read_outlines(reply.data, view)
        if not any(not outline.hole for outline in outlines):
            raise _Refused(Failure(kind="bad_reply", detail="the reply holds no outline"), reply.text)
        return draw(outlines, height=height, width=width, within=box)

    async def _ask(self, prompt: str, image: Image, schema: dict[str, Any] | None, *, question: str) -> ChatReply:
        system, user = self._prompts[prompt].fill(question=question)
        reply = await self.chat.complete(
            ChatRequest(
                system=system,
                user=user,
                schema=schema,
                schema_name="outlines",
                images=(encode_jpeg(image, quality=95),),
                max_tokens=self.max_tokens,
                purpose=f"llmseg.{prompt.split('_')[1]}",
            )
        )
        if reply.status != "ok":
            raise _Refused(failure_of_reply(reply), reply.text)
        return reply


def read_outlines(data: Mapping[str, object] | None, view: Box) -> list[Outline]:
    """The outlines of a reply as pixels of the whole image; `view` is the part that was shown. Entries that are no
    outline are left out."""
    listed = (data or {}).get("outlines")
    found: list[Outline] = []
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict):
            continue
        try:
            points = np.asarray(entry.get("points"), np.float64)
        except (TypeError, ValueError):
            continue
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not np.isfinite(points).all():
            continue
        placed = np.array([view.x1, view.y1]) + points / UNITS * np.array([view.width, view.height])
        corners = entry.get("corners")
        listed_corners = corners if isinstance(corners, list) else []
        known = frozenset(c for c in listed_corners if isinstance(c, int) and 0 <= c < len(points))
        found.append(Outline(points=placed, corners=known, hole=entry.get("hole") is True))
    return found


def overlaid(crop: Image, mask: Mask) -> Image:
    """The crop with the mask's edge drawn in, so that the model sees where it is off."""
    inner = mask.copy()
    inner[1:] &= mask[:-1]
    inner[:-1] &= mask[1:]
    inner[:, 1:] &= mask[:, :-1]
    inner[:, :-1] &= mask[:, 1:]
    shown = crop.copy()
    shown[mask & ~inner] = (255, 0, 255)
    return shown


def _schema(*, done: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {"outlines": {"type": "array", "items": _OUTLINE}}
    if done:
        properties["done"] = {"type": "boolean"}
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}

"""Seg-Zero and its relatives: a reasoning vision model gives boxes, the mask model makes masks of them.

The model stands behind an OpenAI-compatible endpoint (vLLM serves the released weights). The image is squeezed to
840x840 before it is shown, as in training, and boxes and points come back in that frame; models that answer in
relative numbers get the picture as it is. Each object's box goes to the mask model with its points, all of them on the
object, as published; several objects are one mask together. The prompt is our wording of the published task;
`[score.options.seg-zero] prompt` may name the file of the one the weights were trained with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Image
from engine.core.images import encode_jpeg
from engine.core.protocols import ChatModel, ChatReply, ChatRequest, MaskModel, SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from engine.llm.prompts import load_prompt
from inference.segmenters.bridge import wait_for
from inference.segmenters.model_boxes import Space, read_boxes

PROMPT = "segzero_v1"
SIDE_PX = 840


class SegZero:
    """The `Segmenter` over a vision chat model and a mask model."""

    def __init__(
        self,
        chat: ChatModel,
        mask_model: MaskModel,
        *,
        space: Space = "resized_840",
        prompt: str = PROMPT,
        max_tokens: int = 2000,
    ) -> None:
        self.name = "seg-zero"
        self.chat = chat
        self.mask_model = mask_model
        self.space = space
        self.prompt = load_prompt("inference.segmenters", prompt)
        self.max_tokens = max_tokens

    def models(self) -> tuple[ModelRef, ...]:
        told = ModelRef(role="segmenter", name=self.chat.name, version=f"{self.prompt.name} {self.space}")
        return told, self.mask_model.model()

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request; the model is asked for all of them at a time."""
        replies = wait_for([self.chat.complete(self._ask(request)) for request in requests])
        return [self._result(request, reply) for request, reply in zip(requests, replies, strict=True)]

    def _ask(self, request: SegmentRequest) -> ChatRequest:
        system, user = self.prompt.fill(question=request.prompt)
        image = squeezed(request.image) if self.space == "resized_840" else request.image
        return ChatRequest(
            system=system,
            user=user,
            images=(encode_jpeg(image, quality=95),),
            max_tokens=self.max_tokens,
            purpose="seg-zero",
        )

    def _result(self, request: SegmentRequest, reply: ChatReply) -> SegmentResult:
        if reply.status != "ok":
            return SegmentResult(mask=None, failure=failure_of_reply(reply), text=reply.text)
        height, width = request.image.shape[:2]
        found = read_boxes(reply.text, space=self.space, width=width, height=height)
        if found is None:
            failure = Failure(kind="bad_reply", detail="no boxes can be read in the reply")
            return SegmentResult(mask=None, failure=failure, text=reply.text)
        if not found.objects and found.dropped:
            failure = Failure(kind="bad_reply", detail=f"none of {found.dropped} boxes has a width and a height")
            return SegmentResult(mask=None, failure=failure, text=reply.text)
        mask = np.zeros((height, width), bool)
        # an empty list is the model's answer that nothing is there, and so is the empty mask
        if found.objects:
            boxes = [one.box for one in found.objects]
            points = [one.points for one in found.objects]
            for made in self.mask_model.segment(request.image, boxes, points=points):
                mask |= made.mask
        if found.objects and not mask.any():
            failure = Failure(kind="error", detail=f"{self.mask_model.name} found nothing in the reply's boxes")
            return SegmentResult(mask=None, failure=failure, text=reply.text)
        return SegmentResult(mask=mask, text=reply.text)


def squeezed(image: Image, *, side_px: int = SIDE_PX) -> Image:
    """The image as a square of `side_px`, its sides' ratio not kept."""
    picture = PilImage.fromarray(image).resize((side_px, side_px), PilImage.Resampling.BICUBIC)
    return np.asarray(picture, dtype=np.uint8)


def failure_of_reply(reply: ChatReply) -> Failure:
    """The kind of failure that a reply which is not "ok" stands for."""
    if reply.status in ("refused", "filtered"):
        return Failure(kind="refused", detail=f"the model's reply is {reply.status}")
    if reply.status in ("truncated", "invalid"):
        return Failure(kind="bad_reply", detail=f"the model's reply is {reply.status}")
    return Failure(kind="no_reply", detail=f"the model's reply is {reply.status}: {reply.detail}"[:300])

"""A segmenter of the LISA family as the rest of the system sees it: requests in, masks or failures with a kind out.

What the three programs do differently (prompt, what a reply without [SEG] means, extra points) is in `lisa`, `sesame`
and `read`. Requests that come together are computed together, see `pipeline`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from engine.core.protocols import SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from inference.segmenters.checkpoint import Checkpoint, halving
from inference.segmenters.llava.model import load_networks
from inference.segmenters.llava.pipeline import MAX_NEW_TOKENS, Pipeline, Spoken
from inference.segmenters.llava.prompts import CONVERSATIONS, prompt
from segmentation.device import inference

DType = Literal["float32", "float16", "bfloat16"]


class LlavaSegmenter(ABC):
    """Base of LISA, SESAME and READ. Loads the released checkpoint's folder on construction.

    `conversation` names the prompt's form, `forced` puts the answer "[SEG]." into the prompt instead of generating
    one, as LISA's benchmark does. Raises `ConfigError` when something is absent or does not fit.
    """

    name = "llava"
    conversation = "llava_v1"

    def __init__(
        self,
        weights: Path,
        *,
        vision_tower: Path | None = None,
        device: str = "auto",
        dtype: DType = "float32",
        conversation: str | None = None,
        forced: bool = False,
        max_new_tokens: int = MAX_NEW_TOKENS,
    ) -> None:
        self._conversation = conversation if conversation is not None else self.conversation
        # An unknown name is told before gigabytes are read.
        prompt("", conversation=self._conversation)
        self._forced = forced
        self._limit = max_new_tokens
        self._networks = load_networks(weights, vision_tower=vision_tower, device=device, dtype=dtype)
        self._pipeline = Pipeline(self._networks)
        self._dtype = dtype
        self._checkpoint = Checkpoint.of(self.name, weights)

    def models(self) -> tuple[ModelRef, ...]:
        """The checkpoint, with number type and prompt form in its version, and the digest of its weights."""
        form = f"{self._conversation}{' forced' if self._forced else ''}"
        return (self._checkpoint.ref(f"{self._dtype}, {form}"),)

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request, all of them computed together. A reply without [SEG] is the failure `no_mask_token`,
        with the reply's text; memory that does not suffice for one alone is `out_of_memory`."""
        return halving(requests, self._answer) if requests else []

    def _answer(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        with inference(self._networks.device):
            # a picture that is asked about several times is looked at once
            pictures = {id(request.image): request.image for request in requests}
            views = dict(zip(pictures, self._pipeline.views(list(pictures.values())), strict=True))
            prompts = [
                (
                    self._networks.tokenizer.encode_with_image(
                        prompt(request.prompt, conversation=self._conversation, forced=self._forced)
                    ),
                    views[id(request.image)][0],
                )
                for request in requests
            ]
            if self._forced:
                spoken = self._pipeline.listen_many(prompts)
            else:
                spoken = self._pipeline.generate_many(prompts, limit=self._limit)
            return [
                self._result(request, own, features=views[id(request.image)][1])
                for request, own in zip(requests, spoken, strict=True)
            ]

    def _result(self, request: SegmentRequest, spoken: Spoken, *, features: Any) -> SegmentResult:
        text = self._networks.tokenizer.decode(spoken.new_ids)
        places = self._pipeline.seg_places(spoken.ids)
        if not places:
            cut = "" if spoken.new_ids and spoken.new_ids[-1] == self._networks.tokenizer.eos else ", cut at the limit"
            detail = f"the reply has no [SEG]{cut}"
            return SegmentResult(None, Failure(kind="no_mask_token", detail=detail), text=text)
        height, width = request.image.shape[:2]
        low, _ = self._draw(spoken, places[0], features=features, height=height, width=width)
        mask = (self._pipeline.full_size(low, height, width)[0] > 0).cpu().numpy()
        return SegmentResult(mask, text=text)

    @abstractmethod
    def _draw(self, spoken: Spoken, place: int, *, features: Any, height: int, width: int) -> tuple[Any, Any]:
        """Small logits (1, 1, h, w) and quality (1, 1) for the [SEG] whose state is at `place`."""


__all__ = ["CONVERSATIONS", "DType", "LlavaSegmenter"]

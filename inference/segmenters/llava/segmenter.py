"""A segmenter of the LISA family as the rest of the system sees it: requests in, masks or failures with a kind out.

What the three programs do differently (prompt, what a reply without [SEG] means, extra points) is in `lisa`, `sesame`
and `read`. Requests are answered one by one: padding, which the originals' batches have, changes the numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from engine.core.geometry import Image
from engine.core.protocols import SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from inference.segmenters.llava.model import load_networks
from inference.segmenters.llava.pipeline import MAX_NEW_TOKENS, Pipeline, Spoken
from inference.segmenters.llava.prompts import CONVERSATIONS, prompt
from segmentation import weights as weight_files
from segmentation.device import free_cache, inference, is_out_of_memory

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
        self._folder = weights
        self._digest = weight_files.folder_digest(weights, weights_dir=weights.parent)

    def models(self) -> tuple[ModelRef, ...]:
        """The checkpoint, with number type and prompt form in its version, and the digest of its weights."""
        form = f"{self._conversation}{' forced' if self._forced else ''}"
        return (
            ModelRef(
                role="segmenter",
                name=f"{self.name}:{self._folder.name}",
                version=f"transformers {version('transformers')}, {self._dtype}, {form}",
                weights_sha256=self._digest,
            ),
        )

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request. A reply without [SEG] is the failure `no_mask_token`, with the reply's text; memory
        that does not suffice is `out_of_memory`."""
        results: list[SegmentResult] = []
        seen: tuple[Image, Any, Any] | None = None
        for request in requests:
            short = ""
            try:
                with inference(self._networks.device):
                    if seen is None or seen[0] is not request.image:
                        seen = None
                        seen = (
                            request.image,
                            self._pipeline.image_vectors(request.image),
                            self._pipeline.image_features(request.image),
                        )
                    results.append(self._answer(request, vectors=seen[1], features=seen[2]))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                short = str(error).splitlines()[0]
            if short:
                # Outside the handler, so that the traceback no longer holds what was computed.
                seen = None
                free_cache()
                results.append(SegmentResult(None, Failure(kind="out_of_memory", detail=short)))
        return results

    def _answer(self, request: SegmentRequest, *, vectors: Any, features: Any) -> SegmentResult:
        ids = self._networks.tokenizer.encode_with_image(
            prompt(request.prompt, conversation=self._conversation, forced=self._forced)
        )
        if self._forced:
            spoken = self._pipeline.listen(ids, vectors)
        else:
            spoken = self._pipeline.generate(ids, vectors, limit=self._limit)
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

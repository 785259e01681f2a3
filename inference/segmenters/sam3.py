"""SAM 3 with a noun phrase as its prompt, through transformers: every thing of that kind is found, the surest is taken.

It knows kinds of things, not names; which of several things is meant is not its business. With `every=True` the masks
of all things found are joined, as referring benchmarks with several targets want it. Phrases longer than its text
encoder reads (32 tokens) are cut by the tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from engine.core.errors import ConfigError
from engine.core.geometry import Image
from engine.core.protocols import SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from inference.segmenters.checkpoint import Checkpoint, halving
from segmentation.device import inference, pick_device
from segmentation.pretrained import load_pretrained, require

#: Tokens of a phrase, the marks at its ends included.
TEXT_TOKENS = 32
#: Least score of a thing, and least probability of a pixel (both the library's own defaults).
THRESHOLD, MASK_THRESHOLD = 0.3, 0.5


class Sam3:
    """Segmenter over a SAM 3 folder in transformers' layout. Raises `ConfigError` when there is none."""

    name = "sam3"

    def __init__(
        self,
        weights: Path,
        *,
        device: str = "auto",
        dtype: Literal["float32", "float16", "bfloat16"] = "float32",
        threshold: float = THRESHOLD,
        every: bool = False,
    ) -> None:
        require("segmenter sam3", "torch", "torchvision", "transformers")
        if not (weights / "config.json").is_file():
            raise ConfigError(
                f"{weights} holds no SAM 3: put config.json, model.safetensors and the processor's files of "
                "facebook/sam3 there (its licence has to be accepted on the Hub)"
            )
        from transformers import AutoImageProcessor, AutoTokenizer, Sam3Model

        self._device = pick_device(device)
        self._dtype = dtype if self._device.type != "cpu" else "float32"
        self._network = load_pretrained(Sam3Model, weights, "sam3").eval().to(self._device)
        self._pixels = AutoImageProcessor.from_pretrained(weights, local_files_only=True)
        self._tokenizer = AutoTokenizer.from_pretrained(weights, local_files_only=True)
        self._threshold = threshold
        self._every = every
        self._checkpoint = Checkpoint.of(self.name, weights)

    def models(self) -> tuple[ModelRef, ...]:
        """The checkpoint, with the thresholds in its version, and the digest of its weights."""
        how = f"{self._dtype}, threshold {self._threshold}{', every' if self._every else ''}"
        return (self._checkpoint.ref(how),)

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request, all of them computed together; nothing found is the failure `no_box`, too little
        memory for one alone `out_of_memory`. A picture that is asked about several times is looked at once."""
        return halving(requests, self._answer) if requests else []

    def _answer(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        with inference(self._device, self._dtype):
            pictures = {id(request.image): request.image for request in requests}
            places = {key: place for place, key in enumerate(pictures)}
            features = _pick(self._look(list(pictures.values())), [places[id(request.image)] for request in requests])
            text = self._tokenizer(
                [request.prompt for request in requests],
                return_tensors="pt",
                padding="max_length",
                max_length=TEXT_TOKENS,
                truncation=True,
            )
            found = self._network(
                vision_embeds=features,
                input_ids=text["input_ids"].to(self._device),
                attention_mask=text["attention_mask"].to(self._device),
            )
            scores = found.pred_logits.float().sigmoid()
            if found.presence_logits is not None:
                scores = scores * found.presence_logits.float().sigmoid()
            return [self._result(request, scores[row], found.pred_masks[row]) for row, request in enumerate(requests)]

    def _look(self, images: Sequence[Image]) -> Any:
        pixels = self._pixels(images=list(images), return_tensors="pt")["pixel_values"]
        return self._network.get_vision_features(pixels.to(self._device))

    def _result(self, request: SegmentRequest, scores: Any, masks: Any) -> SegmentResult:
        from torch.nn.functional import interpolate

        best = int(scores.argmax())
        score = float(scores[best])
        if not score > self._threshold:
            detail = f"nothing like that was found: the best score is {score:.3f}, the threshold {self._threshold}"
            return SegmentResult(None, Failure(kind="no_box", detail=detail))
        kept = (scores > self._threshold).nonzero()[:, 0].tolist() if self._every else [best]
        mask = None
        for index in kept:
            # One at a time: full-size maps of all things found would be large.
            small = masks[index].float().sigmoid()[None, None]
            full = interpolate(small, request.image.shape[:2], mode="bilinear", align_corners=False)[0, 0]
            mask = full > MASK_THRESHOLD if mask is None else mask | (full > MASK_THRESHOLD)
        return SegmentResult(None if mask is None else mask.cpu().numpy(), score=score)


def _pick(features: Any, rows: Sequence[int]) -> Any:
    """The features of these pictures, one entry per question, in the library's own class."""

    def of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(of(part) for part in value)
        return value[list(rows)] if hasattr(value, "shape") else value

    return type(features)(**{name: of(value) for name, value in features.items()})

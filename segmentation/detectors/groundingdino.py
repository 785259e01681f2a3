"""Grounding DINO through groundingdino-py: phrases and images to candidate boxes.

The model itself is the package's own code; captions, spans, batches and thresholds are ours. Images of one shown size
go through the model together; images of different sizes don't, because padding changes the backbone's numbers, and a
box must not depend on its neighbours in a batch. Thresholds and scores mean what the package's `predict` means by
them. Which box is the wanted entity is decided elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.geometry import Floats, Image
from engine.core.protocols import Detection, DetectRequest
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.detectors import boxes as geometry
from segmentation.detectors.groundingdino_image import padded_size, shown_size, to_tensor
from segmentation.detectors.groundingdino_model import build_model, forward_context, read_config
from segmentation.detectors.groundingdino_text import Caption, assign_phrases, build_captions, phrase_tokens
from segmentation.device import in_batches, inference, pick_device

#: Pinned revision of the text encoder's repository, of which the tokenizer and config are used.
BERT_REVISION = "86b5e0934494bd15c9632b12f734a8a67f723594"


@dataclass(frozen=True, slots=True)
class RawBoxes:
    """What the model said for one image and caption: `probabilities` (queries, tokens) without padding tokens,
    `boxes` (queries, 4) normalised centre boxes, `tokens` the token indices of each phrase of the caption."""

    caption: Caption
    probabilities: Floats
    boxes: Floats
    tokens: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Job:
    request: int
    image: Image
    size: tuple[int, int]
    caption: Caption


class GroundingDino:
    """Detector over groundingdino-py. Loads its weights on construction, to the configured device.

    Raises `ConfigError` when weights, text encoder or config are absent or don't fit; nothing is downloaded unless a
    Hub name stands in the config.
    """

    name = "groundingdino"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        _require_packages()
        args = read_config(config.detector_config)
        path = weights.resolve_file(
            config.detector_weights,
            weights_dir=weights_dir,
            setting="detector_weights",
            published=weights.PUBLISHED.get(config.detector_config),
        )
        text_encoder = _text_encoder(config.text_encoder, weights_dir)
        self._config = config
        self._device = pick_device(config.device)
        self._dtype = config.dtype if self._device.type != "cpu" else "float32"
        self._queries = int(args["num_queries"])
        self._width = int(args["hidden_dim"])
        self._sides = (int(args["short_side"]), int(args["long_side"]))
        self._network = build_model(args, weights.load_state(path), text_encoder=text_encoder).to(self._device)
        self._sha256 = weights.file_digest(path, weights_dir=weights_dir)

    def model(self) -> ModelRef:
        """Name, package version and digest of the weights."""
        label = self._config.detector_config
        return ModelRef(
            role="detector",
            name=f"{self.name}:{label if label in weights.PUBLISHED else Path(label).stem}",
            version=f"groundingdino-py {version('groundingdino-py')}",
            weights_sha256=self._sha256,
        )

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
        """Candidates per request, best first, `phrase` in the request's own spelling.

        Raises `OutOfMemory` when one image alone does not fit.
        """
        found: list[list[Detection]] = []
        for request, raws in zip(requests, self.raw(requests), strict=True):
            height, width = request.image.shape[:2]
            all_boxes, all_scores, all_labels = [np.zeros((0, 4), np.float32)], [np.zeros(0, np.float32)], []
            for raw in raws:
                labels, scores = assign_phrases(
                    raw.probabilities, raw.tokens, text_threshold=self._config.text_threshold
                )
                all_boxes.append(raw.boxes)
                all_scores.append(scores)
                all_labels += [None if i is None else raw.caption.phrases[i] for i in labels]
            found.append(
                geometry.select(
                    np.concatenate(all_boxes),
                    np.concatenate(all_scores),
                    all_labels,
                    width=width,
                    height=height,
                    box_threshold=self._config.box_threshold,
                    nms_iou=self._config.nms_iou,
                )
            )
        return found

    def raw(self, requests: Sequence[DetectRequest]) -> list[list[RawBoxes]]:
        """The model's own numbers, one entry per caption of each request, before any threshold."""
        groups: dict[tuple[int, int], list[_Job]] = defaultdict(list)
        for index, request in enumerate(requests):
            captions, _ = build_captions(request.phrases, count_tokens=self._count_tokens)
            size = shown_size(*request.image.shape[:2], short_side=self._sides[0], long_side=self._sides[1])
            groups[size] += [_Job(index, request.image, size, caption) for caption in captions]
        out: list[list[RawBoxes]] = [[] for _ in requests]
        for jobs in groups.values():
            results = in_batches(jobs, self._forward, batch=self._config.batch_images)
            for job, raw in zip(jobs, results, strict=True):
                out[job.request].append(raw)
        return out

    def _count_tokens(self, text: str) -> int:
        return len(self._network.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _forward(self, jobs: Sequence[_Job]) -> list[RawBoxes]:
        import torch

        with inference(self._device, self._dtype), forward_context(self._width):
            # Captions of one request repeat its image: one tensor serves them all.
            tensors = {id(job.image): to_tensor(job.image, job.size) for job in jobs}
            stacked = torch.stack([tensors[id(job.image)] for job in jobs])
            samples = self._samples(stacked.to(self._device))
            answer = self._network(samples, captions=[job.caption.text for job in jobs])
            probabilities = answer["pred_logits"].float().sigmoid().cpu().numpy()
            found = answer["pred_boxes"].float().cpu().numpy()
        results = []
        for row, job in enumerate(jobs):
            offsets = self._network.tokenizer(job.caption.text, return_offsets_mapping=True)["offset_mapping"]
            results.append(
                RawBoxes(
                    job.caption,
                    probabilities[row][:, : len(offsets)],
                    found[row],
                    tuple(phrase_tokens(job.caption, offsets)),
                )
            )
        return results

    def _samples(self, images: Any) -> Any:
        """The package's pair of tensor and mask (True where padded); only narrow strips get padding."""
        import torch
        from groundingdino.util.misc import NestedTensor

        count, _, height, width = images.shape
        full_height, full_width = padded_size(height, width, queries=self._queries)
        mask = torch.zeros((count, full_height, full_width), dtype=torch.bool, device=images.device)
        mask[:, height:, :] = True
        mask[:, :, width:] = True
        padded = torch.nn.functional.pad(images, (0, full_width - width, 0, full_height - height))
        return NestedTensor(padded, mask)


def _text_encoder(spec: str, weights_dir: Path) -> Path:
    pinned = f"google-bert/bert-base-uncased@{BERT_REVISION}"
    if spec == "bert-base-uncased" and not (weights_dir / spec).is_dir() and not Path(spec).is_dir():
        raise ConfigError(
            f"text_encoder = {spec!r}: put config.json, vocab.txt, tokenizer.json and tokenizer_config.json of "
            f"{pinned} into {weights_dir / spec}, or set text_encoder = {pinned!r} to have them fetched once"
        )
    return weights.resolve_folder(spec, weights_dir=weights_dir, setting="text_encoder")


def _require_packages() -> None:
    import importlib.util

    for package in ("torch", "transformers", "groundingdino"):
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"detector groundingdino needs {package}: pip install 'nest-data-engine[gpu]'")

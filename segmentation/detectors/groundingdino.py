"""Grounding DINO through groundingdino-py: phrases and images to candidate boxes.

The network is the package's own code; captions, spans, batches and thresholds are in `grounded`. Scores mean what the
package's `predict` means by them. Which box is the wanted entity is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.detectors.grounded import GroundedDetector, Job, RawBoxes
from segmentation.detectors.groundingdino_image import padded_size, to_tensor
from segmentation.detectors.groundingdino_model import build_model, forward_context, read_config
from segmentation.detectors.groundingdino_text import phrase_tokens
from segmentation.device import inference, pick_device
from segmentation.pretrained import require

#: Pinned revision of the text encoder's repository, of which the tokenizer and config are used.
BERT_REVISION = "86b5e0934494bd15c9632b12f734a8a67f723594"


class GroundingDino(GroundedDetector):
    """Detector over groundingdino-py. Loads its weights on construction, to the configured device.

    Raises `ConfigError` when weights, text encoder or config are absent or don't fit; nothing is downloaded unless a
    Hub name stands in the config.
    """

    name = "groundingdino"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        require("detector groundingdino", "torch", "transformers", "groundingdino")
        args = read_config(config.detector_config)
        path = weights.resolve_file(
            config.detector_weights,
            weights_dir=weights_dir,
            setting="detector_weights",
            published=weights.PUBLISHED.get(config.detector_config),
        )
        text_encoder = _text_encoder(config.text_encoder, weights_dir)
        super().__init__(config, sides=(int(args["short_side"]), int(args["long_side"])))
        self._device = pick_device(config.device)
        self._dtype = config.dtype if self._device.type != "cpu" else "float32"
        self._queries = int(args["num_queries"])
        self._width = int(args["hidden_dim"])
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

    def _count_tokens(self, text: str) -> int:
        return len(self._network.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _forward(self, jobs: Sequence[Job]) -> list[RawBoxes]:
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

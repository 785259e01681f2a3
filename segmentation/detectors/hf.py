"""Grounding DINO through transformers: the second implementation, for folders in that library's layout.

Only the network is the library's. Its processor and its post-processing, whose argument names changed between
versions, are not used: pixels, captions, spans and thresholds are the same code as for groundingdino-py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from engine.core.config.sections import AnnotateSection
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.detectors.grounded import GroundedDetector, Job, RawBoxes
from segmentation.detectors.groundingdino_image import LONG_SIDE, SHORT_SIDE, padded_size, to_tensor
from segmentation.detectors.groundingdino_text import phrase_tokens
from segmentation.device import inference, pick_device
from segmentation.pretrained import load_pretrained, model_folder, model_label, require

#: The default model's folder in the weights folder, and its pinned place on the Hub.
FOLDER = "grounding-dino-tiny"
HUB = "IDEA-Research/grounding-dino-tiny@a2bb814dd30d776dcf7e30523b00659f4f141c71"


class HfGroundingDino(GroundedDetector):
    """Detector over transformers' Grounding DINO. `detector_weights` names a folder or owner/name@commit; the config's
    `detector_config` and `text_encoder` are not read, since the folder holds both.

    Raises `ConfigError` when the folder is absent or holds another model.
    """

    name = "hf-groundingdino"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path) -> None:
        require("hf-groundingdino", "torch", "transformers")
        folder = model_folder(
            config.detector_weights, weights_dir=weights_dir, setting="detector_weights", default=FOLDER, hub=HUB
        )
        super().__init__(config, sides=_sides(folder))
        from transformers import AutoTokenizer, GroundingDinoForObjectDetection

        self._device = pick_device(config.device)
        self._dtype = config.dtype if self._device.type != "cpu" else "float32"
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        network = load_pretrained(GroundingDinoForObjectDetection, folder, "detector_weights")
        self._network = network.eval().to(self._device)
        self._queries = int(self._network.config.num_queries)
        self._folder = folder
        self._sha256 = weights.folder_digest(folder, weights_dir=weights_dir)

    def model(self) -> ModelRef:
        """Name, library version and digest of the weights."""
        return ModelRef(
            role="detector",
            name=f"{self.name}:{model_label(self._config.detector_weights, self._folder)}",
            version=f"transformers {version('transformers')}",
            weights_sha256=self._sha256,
        )

    def _count_tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _forward(self, jobs: Sequence[Job]) -> list[RawBoxes]:
        import torch

        tensors = {id(job.image): to_tensor(job.image, job.size) for job in jobs}
        pixels = torch.stack([tensors[id(job.image)] for job in jobs])
        height, width = jobs[0].size
        full_height, full_width = padded_size(height, width, queries=self._queries)
        pixels = torch.nn.functional.pad(pixels, (0, full_width - width, 0, full_height - height))
        mask = torch.zeros((len(jobs), full_height, full_width), dtype=torch.long)
        mask[:, :height, :width] = 1
        text = self._tokenizer([job.caption.text for job in jobs], padding=True, return_tensors="pt")
        with inference(self._device, self._dtype):
            answer = self._network(
                pixel_values=pixels.to(self._device),
                pixel_mask=mask.to(self._device),
                **{k: v.to(self._device) for k, v in text.items()},
            )
            probabilities = answer.logits.float().sigmoid().cpu().numpy()
            found = answer.pred_boxes.float().cpu().numpy()
        results = []
        for row, job in enumerate(jobs):
            offsets = self._tokenizer(job.caption.text, return_offsets_mapping=True)["offset_mapping"]
            tokens = tuple(phrase_tokens(job.caption, offsets))
            results.append(RawBoxes(job.caption, probabilities[row][:, : len(offsets)], found[row], tokens))
        return results


def _sides(folder: Path) -> tuple[int, int]:
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return SHORT_SIDE, LONG_SIDE
    size = json.loads(path.read_text(encoding="utf-8")).get("size", {})
    return int(size.get("shortest_edge", SHORT_SIDE)), int(size.get("longest_edge", LONG_SIDE))

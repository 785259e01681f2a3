"""LISA in process, from the released checkpoints (7B, 13B): reasoning segmentation by a language model that says
[SEG].

Of several [SEG] in a reply the first is drawn, as LISA's chat program saves it. The published benchmark numbers come
from `forced=True`, where the answer stands in the prompt. The 13B checkpoint on llama-2 wants `conversation =
"llava_llama_2"`. LISA reads only the middle square of a long image, though its SAM sees all of it.
"""

from __future__ import annotations

from typing import Any

from inference.segmenters.llava.pipeline import Spoken
from inference.segmenters.llava.segmenter import LlavaSegmenter


class Lisa(LlavaSegmenter):
    """Segmenter over a LISA checkpoint's folder."""

    name = "lisa"
    conversation = "llava_v1"

    def _draw(self, spoken: Spoken, place: int, *, features: Any, height: int, width: int) -> tuple[Any, Any]:
        prompts = self._pipeline.prompts(spoken.states[place][None])
        low, quality = self._pipeline.masks(features, prompts)
        return low, quality

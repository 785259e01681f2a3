"""READ in process: SESAME, with points for SAM taken from where the picture resembles the [SEG] state.

The points are made in `llava.points`. The original stops with an error when a reply has two [SEG]; here the first is
drawn, like everywhere in the family. Settings that its authors note for the 13B model: `points=THIRTEEN_B`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inference.segmenters.llava.pipeline import MAX_NEW_TOKENS, Spoken
from inference.segmenters.llava.points import SEVEN_B, THIRTEEN_B, PointRule, pick_points
from inference.segmenters.llava.segmenter import DType, LlavaSegmenter
from segmentation.mask_models.sam_model import to_input_frame

__all__ = ["SEVEN_B", "THIRTEEN_B", "PointRule", "Read"]


class Read(LlavaSegmenter):
    """Segmenter over a READ checkpoint's folder."""

    name = "read"
    conversation = "llava_v1_user"

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
        points: PointRule = SEVEN_B,
    ) -> None:
        self._rule = points
        super().__init__(
            weights,
            vision_tower=vision_tower,
            device=device,
            dtype=dtype,
            conversation=conversation,
            forced=forced,
            max_new_tokens=max_new_tokens,
        )

    def _draw(self, spoken: Spoken, place: int, *, features: Any, height: int, width: int) -> tuple[Any, Any]:
        import torch

        n = self._networks
        similarity = self._similarity(spoken, place)
        points, labels = pick_points(similarity, height=height, width=width, side=n.tower_side, rule=self._rule)
        frame = to_input_frame(points, height, width, side=n.sam_side)
        coordinates = torch.as_tensor(frame, dtype=torch.float32, device=n.device)[None]
        prompts = self._pipeline.prompts(spoken.states[place][None])
        given = (coordinates, torch.as_tensor(labels, device=n.device)[None])
        low, quality = self._pipeline.masks(features, prompts, points=given)
        return low, quality

    def _similarity(self, spoken: Spoken, place: int) -> Any:
        """Dot product of the [SEG] state with each of the picture's states, numpy float32 (patches,)."""
        start = spoken.ids.index(self._networks.tokenizer.im_start) + 1
        picture = spoken.states[start : start + self._networks.patches]
        return (picture @ spoken.states[place]).float().cpu().numpy()

"""The gates in order: figures against the config's thresholds. The first one that fails names the rejection.

All figures are worked out and kept, also those after a failure, so that thresholds can be chosen afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Box, Mask
from engine.core.protocols import Segmentation
from engine.core.schema import Code, GateFigure
from segmentation.gates import figures

#: The code of a failed gate, by its name, in the order in which they are looked at.
CODES: Mapping[str, Code] = MappingProxyType(
    {
        "area_min": Code.MASK_TOO_SMALL,
        "area_max": Code.MASK_TOO_LARGE,
        "score": Code.MASK_LOW_QUALITY,
        "stability": Code.MASK_UNSTABLE,
        "box_fill": Code.MASK_LOW_QUALITY,
        "parts": Code.MASK_FRAGMENTED,
        "overlap": Code.MASK_OVERLAPS,
        "border": Code.MASK_CROPPED,
        "face": Code.MASK_NO_FACE,
        "prompt": Code.PROMPTS_DISAGREE,
    }
)


@dataclass(frozen=True, slots=True)
class Mine:
    """What one entity brings to the gates: its box, its mask, the masks of the other entities of the picture, the
    faces found (None if nobody looked), and the boxes of the second prompt (None if it was not asked)."""

    box: Box
    segmentation: Segmentation
    others: Sequence[Mask] = ()
    person: bool = False
    faces: Sequence[Box] | None = None
    second: Sequence[Box] | None = None


def check(mine: Mine, config: AnnotateSection) -> tuple[tuple[GateFigure, ...], Code | None]:
    """All figures, and the code of the first gate that fails, None if all pass."""
    mask = mine.segmentation.mask
    area = figures.area_share(mask)
    if area == 0.0:
        return (_least("area_min", 0.0, config.min_area_share),), Code.MASK_EMPTY
    found = [
        _least("area_min", area, config.min_area_share),
        _most("area_max", area, config.max_area_share),
        _least("score", mine.segmentation.score, config.min_mask_score),
        _least("stability", mine.segmentation.stability, config.min_stability),
        _least("box_fill", figures.box_fill(mask, mine.box), config.min_box_fill),
        _most("parts", figures.parts_loss(mask), config.max_parts_loss),
        _most("overlap", figures.overlap(mask, mine.others), config.max_overlap),
        _most("border", figures.border_share(mask), config.max_border_share),
    ]
    face = figures.face_of(mine.box, mine.faces) if mine.person and mine.faces is not None else None
    if face is not None:
        found.append(_least("face", figures.face_share(mask, face), config.min_face_share))
    if mine.second is not None:
        found.append(_least("prompt", figures.best_iou(mine.box, mine.second), config.min_prompt_iou))
    failed = next((figure for figure in found if not figure.passed), None)
    return tuple(found), CODES[failed.name] if failed is not None else None


def _least(name: str, value: float, threshold: float) -> GateFigure:
    return GateFigure(name=name, value=round(value, 5), threshold=threshold, passed=value >= threshold)


def _most(name: str, value: float, threshold: float) -> GateFigure:
    return GateFigure(name=name, value=round(value, 5), threshold=threshold, passed=value <= threshold)

"""The known truth of the sample week: which pixels of a picture are the named thing.

It comes from how the scenes were composed, not from a segmenter. Pictures are known by the sha256 of their file, which
is also the name of their blob. Nothing of the pipeline may look here; only the demo's last table and tests do.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.core.geometry import Mask

FOLDER = Path(__file__).parent / "truth"


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """A named thing in a sample picture. `position` holds the caption's own place words, empty when there are none;
    `mask_path` is a PNG of the upright picture's size with 0 and 255."""

    image: str
    scene: str
    name: str
    type: str
    slug: str
    position: str
    width: int
    height: int
    mask_path: Path


@functools.cache
def known_entities() -> tuple[KnownEntity, ...]:
    """All (picture, thing) pairs of the sample week, in the order of the scenes and of the captions."""
    rows = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))
    return tuple(
        KnownEntity(
            image=row["sha256"],
            scene=row["scene"],
            name=entity["name"],
            type=entity["type"],
            slug=entity["slug"],
            position=entity["position"],
            width=row["width"],
            height=row["height"],
            mask_path=FOLDER / row["scene"] / f"{entity['slug']}.png",
        )
        for row in rows
        for entity in row["entities"]
    )


def known_pairs() -> frozenset[tuple[str, str]]:
    """The (image sha256, entity name) pairs that `true_mask` knows."""
    return frozenset((entity.image, entity.name) for entity in known_entities())


def true_mask(image_sha256: str, name: str) -> Mask | None:
    """The true mask (H, W) of the upright picture, or None if the picture or the thing in it is not known."""
    for entity in known_entities():
        if entity.image == image_sha256 and entity.name.casefold() == name.casefold():
            import numpy as np
            from PIL import Image as PilImage

            with PilImage.open(entity.mask_path) as picture:
                return np.asarray(np.asarray(picture.convert("L")) > 127)
    return None

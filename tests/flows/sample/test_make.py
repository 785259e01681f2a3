"""The script that makes the sample: the same pixels again, and the committed ones."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image as PilImage

from engine.core.images import open_image
from flows.sample.articles import IMAGES
from flows.sample.config import REFERENCES
from flows.sample.make import outlines
from flows.sample.make.__main__ import make_scene
from flows.sample.make.cutouts import cut_out, photo
from flows.sample.make.references import references
from flows.sample.make.scenes import ENTITIES, SCENES
from flows.sample.truth import FOLDER

CHOSEN = ("medal-night", "launch-pad", "navy-portrait", "design-prize")


@pytest.mark.parametrize("slug", CHOSEN)
def test_a_scene_is_made_again_as_it_was_committed(slug: str) -> None:
    scene = next(scene for scene in SCENES if scene.slug == slug)
    data, masks = make_scene(scene)
    again, same = make_scene(scene)
    assert data == again
    committed = open_image((IMAGES / f"{slug}.jpg").read_bytes()).pixels.astype(np.float32)
    made = open_image(data).pixels.astype(np.float32)
    assert made.shape == committed.shape
    # another version of a codec or of a filter may differ in the last bits
    assert float(np.abs(made - committed).mean()) < 1.0
    for name, mask in masks.items():
        assert np.array_equal(mask, same[name])
        with PilImage.open(FOLDER / slug / f"{name}.png") as stored:
            kept = np.asarray(stored) > 127
        assert np.count_nonzero(kept ^ mask) <= 0.002 * np.count_nonzero(kept)


def test_references_are_made_again() -> None:
    for file, data in references("watch"):
        made = open_image(data).pixels.astype(np.float32)
        committed = open_image((REFERENCES / ENTITIES["watch"][0] / file).read_bytes()).pixels.astype(np.float32)
        assert float(np.abs(made - committed).mean()) < 1.0


@pytest.mark.parametrize("outline", [outlines.COLLINS, outlines.HOPPER, outlines.CUP, outlines.ROCKET])
def test_outlines_lie_in_their_photograph(outline: outlines.Outline) -> None:
    height, width = photo(outline.photo).shape[:2]
    alpha = outline.alpha(height, width)
    assert alpha.shape == (height, width)
    assert 0.01 < float(alpha.mean()) < 0.6
    assert {0.0, 1.0} <= set(np.unique(alpha).tolist())
    if outline.bottom is not None:
        assert not alpha[int(outline.bottom) + 1 :].any()
    cut = cut_out(outline)
    assert cut.shape[2] == 4
    assert cut.shape[0] < height

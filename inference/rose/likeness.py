"""Whether two files show the same photograph, so that a sample's own picture is never its own reference.

A 64-bit difference hash of the grey image; small crops and re-encodings stay within a few bits.
"""

from __future__ import annotations

import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Image

#: Hashes that differ in at most so many of 64 bits are one photo.
SAME_BITS = 6
#: A picture whose hash has fewer set or unset bits than this is too flat for the hash to say anything.
_FLAT_BITS = 4


def difference_hash(image: Image) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """64 bits: whether each cell of an 8x9 grey thumbnail is brighter than its right neighbour."""
    grey = PilImage.fromarray(image).convert("L").resize((9, 8), PilImage.Resampling.BOX)
    cells = np.asarray(grey, dtype=np.int16)
    return (cells[:, :-1] > cells[:, 1:]).ravel()


def same_picture(a: Image, b: Image) -> bool:
    """Whether both are one photograph; flat pictures are compared pixel by pixel instead."""
    left, right = difference_hash(a), difference_hash(b)
    if min(int(left.sum()), 64 - int(left.sum())) < _FLAT_BITS:
        return a.shape == b.shape and bool(np.array_equal(a, b))
    return int(np.count_nonzero(left != right)) <= SAME_BITS

"""What needs no model at all: an empty mask, the whole image, a random box. Printed beside every table.

A score near one of these says that something is broken (weights that did not load, masks of another image).
"""

from __future__ import annotations

import hashlib

from inference.metrics.counts import Counts, Prepared, rectangle

EMPTY, WHOLE, RANDOM = "all-empty", "whole-image", "random-box"
BASELINES = (EMPTY, WHOLE, RANDOM)


def random_box(truth: Prepared, *, key: str, seed: int) -> Counts:
    """Counts of a box whose two corners are drawn uniformly, the same for the same key and seed.

    The other two need no counting: an empty mask meets nothing, the whole image meets all of the target.
    """
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    shares = [int.from_bytes(digest[4 * place : 4 * place + 4], "big") / 2**32 for place in range(4)]
    return rectangle(truth, (shares[0], shares[1], shares[2], shares[3]))

"""From reference pictures to one prototype: clusters of alike pictures, the largest one's mean direction.

The paper clusters, keeps the largest cluster and averages CLIP features; the method and its threshold are not
published. Here: average linkage on cosine similarity, merged while two clusters are at least so alike. No randomness,
ties go to the cluster with the lower first index, so the same pictures give the same prototype.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.core.geometry import Floats


@dataclass(frozen=True, slots=True)
class Prototype:
    """A unit vector (D,), the indices of the pictures behind it, and their mean similarity to it."""

    vector: Floats
    members: tuple[int, ...]
    tightness: float


def clusters(vectors: Floats, *, min_similarity: float) -> list[tuple[int, ...]]:
    """Groups of row indices of unit vectors (N, D), largest first, then by first index."""
    groups = [[index] for index in range(len(vectors))]
    alike = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    while len(groups) > 1:
        best, pair = -np.inf, (0, 0)
        for i in range(len(groups)):
            for j in range(i + 1, len(groups)):
                mean = float(alike[np.ix_(groups[i], groups[j])].mean())
                if mean > best + 1e-12:
                    best, pair = mean, (i, j)
        if best < min_similarity:
            break
        groups[pair[0]] = sorted(groups[pair[0]] + groups.pop(pair[1]))
    return [tuple(group) for group in sorted(groups, key=lambda group: (-len(group), group[0]))]


def make_prototype(vectors: Floats, *, min_similarity: float) -> Prototype | None:
    """The prototype of unit vectors (N, D); None without any."""
    if len(vectors) == 0:
        return None
    members = clusters(vectors, min_similarity=min_similarity)[0]
    own = vectors[list(members)].astype(np.float64)
    mean = own.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    vector = (mean / norm if norm > 0 else own[0]).astype(np.float32)
    return Prototype(vector=vector, members=members, tightness=float((own @ vector.astype(np.float64)).mean()))

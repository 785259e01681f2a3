"""Crops against reference pictures, two ways: by image vectors, and by local features that fit geometrically.

Vectors of a name's references are clustered, and the largest cluster's mean is its prototype, so that a stray picture
(another person in the same frame, a logo) does not blur it. Everything is worked out once per picture and name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.geometry import Box, Floats, Image, mask_box
from engine.core.protocols import Embedder
from segmentation import features
from segmentation.binding.candidates import Named, Scene
from segmentation.binding.evidence import Opinion, resemblance, sole

#: Cosine similarity from which two references belong together.
CLUSTER_SIMILARITY = 0.6
#: Below these nothing is recognised: of vectors (the portable embedder's unlike crops lie around 0.1, related views
#: above 0.4), and of local features (the score of `features.MIN_INLIERS` agreeing ones is 0.44).
VECTOR_FLOOR, FEATURE_FLOOR = 0.3, 0.4


@dataclass(slots=True)
class Likeness:
    """Comparisons within one picture. `embedder` None leaves the vectors out."""

    scene: Scene
    embedder: Embedder | None
    prototypes: dict[str, Floats] = field(default_factory=dict)
    _vectors: dict[int, Floats] = field(default_factory=dict)
    _matches: dict[tuple[str, int], float] = field(default_factory=dict)
    _crops: dict[int, tuple[Image, features.Features]] = field(default_factory=dict)

    def witnesses(self) -> tuple[Callable[[Scene, Named], Opinion | None], ...]:
        """The kinds of evidence this picture can give."""
        return (self.by_vectors, self.by_features) if self.embedder is not None else (self.by_features,)

    def by_vectors(self, scene: Scene, name: Named) -> Opinion | None:
        return resemblance(scene, name, kind="reference", compare=self.vector_similarity, floor=VECTOR_FLOOR)

    def by_features(self, scene: Scene, name: Named) -> Opinion | None:
        if sole(scene, name) is not None:
            return None  # there is nothing to choose from, and this comparison is the dear one
        return resemblance(scene, name, kind="match", compare=self.feature_similarity, floor=FEATURE_FLOOR)

    def vector_similarity(self, name: Named, candidate: int) -> float:
        assert self.embedder is not None
        key = name.entity.name
        if key not in self.prototypes:
            self.prototypes[key] = prototype(self.embedder.embed([subject_of(item) for item in name.references]))
        if candidate not in self._vectors:
            crop = np.ascontiguousarray(self.scene.candidates[candidate].box.crop(self.scene.image))
            self._vectors[candidate] = self.embedder.embed([crop])[0]
        return float(self.prototypes[key] @ self._vectors[candidate])

    def feature_similarity(self, name: Named, candidate: int) -> float:
        key = (name.entity.name, candidate)
        if key not in self._matches:
            crop, found = self._crop(candidate)
            scores = [0.0]
            for reference in name.references:
                match = features.find(reference, found)
                if match is not None:
                    scores.append(match.score * features.colour_agreement(reference, crop, match))
            self._matches[key] = max(scores)
        return self._matches[key]

    def _crop(self, candidate: int) -> tuple[Image, features.Features]:
        if candidate not in self._crops:
            crop = np.ascontiguousarray(_wider(self.scene.candidates[candidate].box).crop(self.scene.image))
            self._crops[candidate] = (crop, features.take(crop, side_px=features.REFERENCE_SIDE_PX))
        return self._crops[candidate]


def prototype(vectors: Floats) -> Floats:
    """Unit mean of the largest cluster (single linkage at `CLUSTER_SIMILARITY`; the first one of equals)."""
    alike = vectors @ vectors.T >= CLUSTER_SIMILARITY
    group = np.arange(len(vectors))
    for row in range(len(vectors)):
        for column in range(row + 1, len(vectors)):
            if alike[row, column]:
                group[group == group[column]] = group[row]
    sizes = np.bincount(group, minlength=len(vectors))
    mean = vectors[group == int(sizes.argmax())].mean(axis=0)
    return np.asarray(mean / max(1e-9, float(np.linalg.norm(mean))), np.float32)


def subject_of(reference: Image) -> Image:
    """A reference cut to what stands out from its plain border, if it has one."""
    from segmentation.detectors.portable_things import foreground

    mask = foreground(reference)
    box = mask_box(mask) if mask is not None else None
    return np.ascontiguousarray(box.crop(reference)) if box is not None else reference


def _wider(box: Box) -> Box:
    margin_x, margin_y = 0.05 * box.width, 0.05 * box.height
    return Box(box.x1 - margin_x, box.y1 - margin_y, box.x2 + margin_x, box.y2 + margin_y)


def similar(references: Sequence[Image], crop: Image, *, embedder: Embedder) -> float:
    """Cosine similarity of a crop with the prototype of some references; 0 without any."""
    if not references:
        return 0.0
    vectors = embedder.embed([subject_of(item) for item in references])
    return float(prototype(vectors) @ embedder.embed([crop])[0])

"""Faces against the faces of reference pictures: one more kind of evidence, switched off unless asked for.

Only persons are compared, only with their own references and those of the other names of the picture. Nothing is
looked up and no vector is kept: see docs/ethics.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.core.geometry import Floats, Image
from segmentation.binding.candidates import Named, Scene
from segmentation.binding.evidence import Opinion, resemblance, sole
from segmentation.binding.likeness import prototype
from segmentation.embedders.faces import SAME_PERSON, FaceVectors


@dataclass(slots=True)
class FaceLikeness:
    """Comparisons of faces within one picture."""

    scene: Scene
    vectors: FaceVectors
    _prototypes: dict[str, Floats | None] = field(default_factory=dict)
    _faces: dict[int, Floats | None] = field(default_factory=dict)

    def by_faces(self, scene: Scene, name: Named) -> Opinion | None:
        if name.entity.type != "person" or sole(scene, name) is not None or self._prototype(name) is None:
            return None
        return resemblance(scene, name, kind="face", compare=self.similarity, floor=SAME_PERSON)

    def similarity(self, name: Named, candidate: int) -> float:
        """Cosine similarity, 0 where either shows no face."""
        wanted, found = self._prototype(name), self._face(candidate)
        return float(wanted @ found) if wanted is not None and found is not None else 0.0

    def _prototype(self, name: Named) -> Floats | None:
        key = name.entity.name
        if key not in self._prototypes:
            found = [vector for image in name.references if (vector := self._vector(image)) is not None]
            self._prototypes[key] = prototype(np.stack(found)) if found else None
        return self._prototypes[key]

    def _vector(self, image: Image) -> Floats | None:
        face = self.vectors.largest(image)
        return self.vectors.embed(image, [face])[0] if face is not None else None

    def _face(self, candidate: int) -> Floats | None:
        if candidate not in self._faces:
            face = self.vectors.largest(self.scene.image, within=self.scene.candidates[candidate].box)
            self._faces[candidate] = self.vectors.embed(self.scene.image, [face])[0] if face is not None else None
        return self._faces[candidate]

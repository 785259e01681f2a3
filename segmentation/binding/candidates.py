"""What the binder looks at: the names a caption gives a picture, and the boxes a detector found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.geometry import Box, Image
from engine.core.protocols import Detection
from engine.core.schema import Entity

#: A box whose area is below this share of the largest one of its phrase is background: spectators, a shelf behind.
_PROMINENT = 0.08


@dataclass(frozen=True, slots=True)
class Named:
    """A named entity with its reference pictures (may be none)."""

    entity: Entity
    references: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A box that may be an entity; `phrases` holds the detector's score for each phrase it answers."""

    box: Box
    phrases: Mapping[str, float]

    @property
    def score(self) -> float:
        return max(self.phrases.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class Scene:
    """One picture: its pixels, everything that is named in it, every candidate box."""

    image: Image
    names: tuple[Named, ...]
    candidates: tuple[Candidate, ...]

    def eligible(self, name: Named) -> tuple[int, ...]:
        """Indices of the candidates that answer the name's phrase and are not mere background."""
        mine = [index for index, item in enumerate(self.candidates) if name.entity.phrase in item.phrases]
        largest = max((self.candidates[index].box.area for index in mine), default=0.0)
        return tuple(index for index in mine if self.candidates[index].box.area >= _PROMINENT * largest)

    def pool(self) -> tuple[int, ...]:
        """All candidates that are eligible for some name, left to right."""
        found = {index for name in self.names for index in self.eligible(name)}
        return tuple(sorted(found, key=lambda index: (self.candidates[index].box.center, index)))


def candidates_of(detections: Sequence[Detection], *, same_iou: float) -> tuple[Candidate, ...]:
    """Detections of one picture as candidates, left to right; boxes that overlap by `same_iou` are one candidate.

    Boxes of one phrase are usually thinned out by the detector; here those of different phrases meet ("man" and
    "person" on one body).
    """
    kept: list[tuple[Box, dict[str, float]]] = []
    for item in sorted(detections, key=lambda item: (-item.score, item.phrase, item.box.x1, item.box.y1)):
        for box, phrases in kept:
            if box.iou(item.box) >= same_iou:
                phrases[item.phrase] = max(phrases.get(item.phrase, 0.0), item.score)
                break
        else:
            kept.append((item.box, {item.phrase: item.score}))
    kept.sort(key=lambda pair: (pair[0].center, pair[0].x1, pair[0].y1))
    return tuple(Candidate(box, dict(sorted(phrases.items()))) for box, phrases in kept)

"""Questions, and a detector and a mask model that know the answer beforehand: for tests of what lies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.geometry import Box, Image, Mask
from engine.core.protocols import Detection, DetectRequest, Segmentation
from engine.core.schema import Entity, ModelRef, Question, Writer

PERSON = "person"


def entity(name: str, *, phrase: str = PERSON, position: str = "", order: int = 0) -> Entity:
    return Entity(
        name=name, type="person" if phrase == PERSON else "product", phrase=phrase, position=position, order=order
    )


def question(
    answer: Entity, *others: Entity, images: Sequence[str], qid: str = "", aliases: tuple[str, ...] = ()
) -> Question:
    """A question about `answer` in a picture that shows it and `others`."""
    return Question(
        id=qid or f"q-{answer.name.lower().replace(' ', '-')}",
        article_id="a",
        article_url="http://news.example/story",
        images=tuple(images),
        question="Which one is it?",
        answer=answer.name,
        aliases=aliases,
        entity_type=answer.type,
        kind="emerging",
        phrase=answer.phrase,
        position=answer.position,
        entities=tuple(sorted((answer, *others), key=lambda item: item.order)),
        writer=Writer(name="test", version="1"),
    )


@dataclass
class KnownDetector:
    """Gives boxes by phrase, the same for every image; counts its calls and the images it saw."""

    boxes: Mapping[str, Sequence[tuple[Box, float]]]
    name: str = "known"
    seen: list[tuple[int, ...]] = field(default_factory=list)
    calls: int = 0

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
        self.calls += 1
        self.seen += [request.image.shape for request in requests]
        return [
            [Detection(box, score, phrase) for phrase in request.phrases for box, score in self.boxes.get(phrase, ())]
            for request in requests
        ]

    def model(self) -> ModelRef:
        return ModelRef(role="detector", name=self.name, version="1")


@dataclass
class BoxMasker:
    """The ellipse inside each box."""

    name: str = "ellipse"
    score: float = 0.9
    stability: float = 0.95
    calls: int = 0

    def segment(self, image: Image, boxes: Sequence[Box], *, points: object = ()) -> list[Segmentation]:
        self.calls += 1
        return [Segmentation(ellipse(image.shape[0], image.shape[1], box), self.score, self.stability) for box in boxes]

    def model(self) -> ModelRef:
        return ModelRef(role="mask_model", name=self.name, version="1")


def ellipse(height: int, width: int, box: Box) -> Mask:
    ys, xs = np.mgrid[0:height, 0:width] + 0.5
    x, y = box.center
    return ((xs - x) / (box.width / 2)) ** 2 + ((ys - y) / (box.height / 2)) ** 2 <= 1.0

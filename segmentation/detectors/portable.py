"""The portable detector: people by their faces, things by their reference pictures or by standing out.

It runs on a CPU with what the package brings. It does not understand words: a phrase is a person's or a thing's by a
list of nouns, and that is all it takes from it. So what it finds for a thing without references may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.core.geometry import Box, Image
from engine.core.protocols import Detection, DetectRequest
from engine.core.schema import ModelRef
from segmentation import features
from segmentation.detectors import portable_things
from segmentation.detectors.portable_faces import FaceFinder, image_digest
from segmentation.mask_models.portable_people import PeopleFinder
from segmentation.memo import Memo

#: Nouns of people; a phrase is a person's if its last word (or the last before "in", "with", "of" ...) is one of them.
PERSON_NOUNS = frozenset(
    word
    for line in (
        "person people human man men woman women boy girl child face figure athlete player footballer striker",
        "goalkeeper coach runner swimmer cyclist driver pilot astronaut cosmonaut officer soldier sailor admiral",
        "general politician president minister chancellor senator governor mayor king queen prince princess pope",
        "bishop judge lawyer actor actress singer musician dancer artist author writer director model host star",
        "celebrity scientist engineer doctor nurse founder executive ceo businessman businesswoman banker chef",
        "commander leader lady gentleman guest winner champion chairman chairwoman spokesman spokeswoman",
        "candidate official",
    )
    for word in line.split()
)
_STOP = re.compile(r"\b(?:in|with|of|on|at|wearing|holding|who|from|standing|sitting)\b")


class PortableDetector:
    """The portable `Detector`. `people` may be shared with the portable mask model, so that faces are found once."""

    name = "portable"
    VERSION: ClassVar[str] = "2"

    def __init__(self, people: PeopleFinder | None = None, *, box_threshold: float = 0.35) -> None:
        self.people = people or PeopleFinder()
        self.box_threshold = box_threshold

    def model(self) -> ModelRef:
        return ModelRef(role="detector", name=self.name, version=self.VERSION, weights_sha256=FaceFinder.SHA256)

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]:
        """One list per request, scores descending; every phrase is looked for by itself."""
        return [self._one(request) for request in requests]

    def faces(self, image: Image) -> list[Box]:
        """Boxes of the faces in an image, for the gate that looks whether a person's mask covers their face."""
        return [face.box for face in self.people.faces.find(image)]

    def _one(self, request: DetectRequest) -> list[Detection]:
        found: list[Detection] = []
        scene: features.Features | None = None
        salient: list[tuple[Box, float]] | None = None
        for phrase in dict.fromkeys(request.phrases):
            if is_person(phrase):
                people = self.people.find(request.image)
                found += [Detection(person.box, person.face.score, phrase) for person in people]
                continue
            boxes: list[tuple[Box, float]] = []
            references = request.exemplars.get(phrase, ())
            if references:
                scene = scene or _scene_of(request.image)
                boxes = portable_things.by_reference(request.image, scene, references)
            if not boxes:
                if salient is None:
                    salient = self._salient(request)
                boxes = salient
            found += [Detection(box, score, phrase) for box, score in merged(boxes)]
        kept = [item for item in found if item.score >= self.box_threshold]
        return sorted(kept, key=lambda item: (-item.score, item.phrase, item.box.x1, item.box.y1))

    def _salient(self, request: DetectRequest) -> list[tuple[Box, float]]:
        """What stands out and is not a person."""
        people = self.people.find(request.image)
        boxes = _salient_in.get(image_digest(request.image), lambda: portable_things.salient(request.image))
        return [
            (box, score)
            for box, score in boxes
            if all(person.box.intersection(box) < 0.5 * box.area for person in people)
        ]


#: Features and salient boxes of the pictures that were looked at last.
_scenes: Memo[features.Features] = Memo(
    lambda found: found.descriptors.nbytes + found.points.nbytes, max_bytes=48_000_000
)
_salient_in: Memo[list[tuple[Box, float]]] = Memo(lambda found: 200 + 100 * len(found), max_bytes=1_000_000)


def _scene_of(image: Image) -> features.Features:
    return _scenes.get(image_digest(image), lambda: features.take(image, side_px=features.SCENE_SIDE_PX))


def is_person(phrase: str) -> bool:
    """Whether a phrase asks for a person, by its head noun."""
    words = re.findall(r"[a-z]+", _STOP.split(phrase.lower(), maxsplit=1)[0])
    return bool(words) and (words[-1] in PERSON_NOUNS or words[-1].removesuffix("s") in PERSON_NOUNS)


def merged(boxes: Sequence[tuple[Box, float]], *, iou: float = 0.5) -> list[tuple[Box, float]]:
    """Boxes of one object as one: the best-scored of those that overlap."""
    kept: list[tuple[Box, float]] = []
    for box, score in sorted(boxes, key=lambda pair: (-pair[1], pair[0].x1, pair[0].y1)):
        if all(box.iou(other) < iou for other, _ in kept):
            kept.append((box, score))
    return kept

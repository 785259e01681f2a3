"""The harder synthetic set through the portable annotator: what was found, said and cut out, recorded.

`support.synthetic_table` records and prints; this holds the recording and how a decision is made from it.

Recorded per scene: the names, the candidate boxes, whose they are in truth, both likenesses of every name and box, and
per name the mask's overlap with the truth and the gates' figures on the box that is truly its own or that was bound.
The decision itself is not recorded: tests and the table make it anew from these.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Box, mask_box, mask_iou
from engine.core.protocols import DetectRequest
from engine.core.schema import Entity
from segmentation import gates
from segmentation.binding import Bound, Candidate, Named, Scene, Unbound, bind, candidates_of
from segmentation.binding.evidence import Opinion, resemblance
from segmentation.binding.likeness import FEATURE_FLOOR, VECTOR_FLOOR, Likeness
from segmentation.detectors.portable import PortableDetector
from segmentation.embedders.portable import PortableEmbedder
from segmentation.mask_models.portable import PortableMasker
from support.synthetic import Scene as Made
from support.synthetic import scenes

FOLDER = Path(__file__).parents[1] / "data" / "synthetic"
#: The recording that the rules were tuned on, and one of another seed, recorded afterwards and only measured.
FILE, HELD_OUT = FOLDER / "evidence.json", FOLDER / "held_out.json"
SEEDS = {FILE: 0, HELD_OUT: 1}
CONFIG = AnnotateSection(detector="portable", mask_model="portable", references=Path("there"))
NOBODY = -1


def versions() -> dict[str, str]:
    """What the recording was made with; a test compares."""
    parts = (PortableDetector, PortableMasker, PortableEmbedder)
    return {part.__name__: part.VERSION for part in parts}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One scene as it was recorded. `likeness[kind][name][candidate]`; `truth[candidate]` is the index of the name it
    truly is, or `NOBODY`; `cut[name]` holds for candidates by index the mask's overlap with the name's truth and the
    gates' figures."""

    names: tuple[Entity, ...]
    width: int
    height: int
    candidates: tuple[Candidate, ...]
    truth: tuple[int, ...]
    likeness: dict[str, list[list[float]]]
    cut: list[dict[str, Any]]
    traits: tuple[str, ...]

    def decide(self, *, min_margin: float, references: bool = True, places: bool = True) -> list[Bound | Unbound]:
        """The binder's decisions, with all evidence or without some kinds of it."""
        entities = [item if places else item.model_copy(update={"position": ""}) for item in self.names]
        shown = (np.zeros((1, 1, 3), np.uint8),) if references else ()
        named = tuple(Named(entity, shown) for entity in entities)
        # only the picture's size is asked for when no colours are named
        scene = Scene(np.zeros((self.height, self.width, 3), np.uint8), named, self.candidates)
        index = {entity.name: number for number, entity in enumerate(entities)}

        def witness(kind: str, floor: float) -> Any:
            table = self.likeness[kind]

            def ask(where: Scene, name: Named) -> Opinion | None:
                sole = (
                    len(where.eligible(name)) == 1 and [item.phrase for item in entities].count(name.entity.phrase) == 1
                )
                if kind == "match" and sole:
                    return None  # as in the stage
                return resemblance(
                    where, name, kind=kind, compare=lambda one, box: table[index[one.entity.name]][box], floor=floor
                )

            return ask

        witnesses = [witness("reference", VECTOR_FLOOR), witness("match", FEATURE_FLOOR)] if references else []
        return bind(scene, witnesses=witnesses, min_margin=min_margin)


@dataclass(frozen=True, slots=True)
class Parts:
    """The portable annotator's parts, which share one finder of people."""

    detector: PortableDetector
    masker: PortableMasker
    embedder: PortableEmbedder

    @classmethod
    def make(cls) -> Parts:
        detector = PortableDetector()
        return cls(detector, PortableMasker(detector.people), PortableEmbedder())


def record(count: int, *, seed: int = 0) -> dict[str, Any]:
    """Run the parts over `count` scenes. Scenes that name two alike are left out."""
    parts = Parts.make()
    rows = []
    for made in scenes(count, seed):
        if len({item.name for item in made.entities}) == len(made.entities):
            rows.append(record_scene(made, parts))
            sys.stderr.write(f"\r{len(rows)}")
    return {"versions": versions(), "scenes": rows}


def record_scene(made: Made, parts: Parts) -> dict[str, Any]:
    """What the parts find in one scene, as JSON values."""
    detector, masker, embedder = parts.detector, parts.masker, parts.embedder
    named = tuple(
        Named(
            Entity(name=item.name, type=item.type, phrase=item.phrase, position=item.position, order=number),
            tuple(made.references.get(item.name, ())),
        )
        for number, item in enumerate(made.entities)
    )
    shown: dict[str, tuple[Any, ...]] = {}
    for name in named:
        shown[name.entity.phrase] = shown.get(name.entity.phrase, ()) + name.references
    (found,) = detector.detect([DetectRequest(made.image, tuple(shown), shown)])
    candidates = candidates_of(found, same_iou=CONFIG.nms_iou)
    scene = Scene(made.image, named, candidates)
    likeness = Likeness(scene, embedder)
    truth = [_owner(made, item.box) for item in candidates]
    masks = masker.segment(made.image, [item.box for item in candidates])
    faces = detector.faces(made.image)
    cut = []
    for number, name in enumerate(named):
        mine: dict[str, Any] = {}
        for index in scene.eligible(name):
            others = [item.mask for other, item in enumerate(masks) if other != index and truth[other] != NOBODY]
            told = gates.Mine(candidates[index].box, masks[index], others, name.entity.type == "person", faces)
            figures, _ = gates.check(told, CONFIG)
            mine[str(index)] = {
                "iou": round(mask_iou(masks[index].mask, made.entities[number].mask), 4),
                "gates": {figure.name: figure.value for figure in figures},
            }
        cut.append(mine)
    every = range(len(candidates))
    return {
        "names": [name.entity.model_dump(mode="json") for name in named],
        "size": [made.image.shape[1], made.image.shape[0]],
        "candidates": [
            [
                [round(v, 1) for v in (c.box.x1, c.box.y1, c.box.x2, c.box.y2)],
                {k: round(s, 4) for k, s in c.phrases.items()},
            ]
            for c in candidates
        ],
        "truth": truth,
        "reference": [[round(likeness.vector_similarity(name, index), 4) for index in every] for name in named],
        "match": [[round(likeness.feature_similarity(name, index), 4) for index in every] for name in named],
        "cut": cut,
        "traits": sorted(made.traits),
    }


def _owner(made: Made, box: Box) -> int:
    """Whose box this is: the named thing it overlaps best, if a silent one does not overlap it better."""
    silent = max((_overlap(mask, box) for mask in made.decoys), default=0.0)
    best = max(range(len(made.entities)), key=lambda number: _overlap(made.entities[number].mask, box))
    score = _overlap(made.entities[best].mask, box)
    return best if score >= 0.3 and score > silent else NOBODY


def _overlap(mask: Any, box: Box) -> float:
    tight = mask_box(mask)
    return tight.iou(box) if tight is not None else 0.0


def read(path: Path = FILE) -> list[Recorded]:
    """The recorded scenes."""
    return [
        Recorded(
            names=tuple(Entity.model_validate(item) for item in row["names"]),
            width=row["size"][0],
            height=row["size"][1],
            candidates=tuple(Candidate(Box(*box), phrases) for box, phrases in row["candidates"]),
            truth=tuple(row["truth"]),
            likeness={"reference": row["reference"], "match": row["match"]},
            cut=row["cut"],
            traits=tuple(row["traits"]),
        )
        for row in json.loads(path.read_text(encoding="utf-8"))["scenes"]
    ]

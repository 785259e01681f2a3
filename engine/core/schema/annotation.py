"""Records of the annotate stage: which box is the named entity, its mask, and the figures behind it."""

from __future__ import annotations

from pydantic import Field

from engine.core.schema.base import Record, Value


class Rle(Value):
    """COCO run-length encoding: column-major, compressed counts as ASCII text. `size` is (height, width)."""

    size: tuple[int, int]
    counts: str


class BoxRecord(Value):
    """A box in pixels of the upright image: x1, y1 inclusive, x2, y2 exclusive, with its score and phrase."""

    x1: float
    y1: float
    x2: float
    y2: float
    score: float
    phrase: str


class BindingEvidence(Value):
    """One kind of evidence for one candidate: `kind` is position, count, reference, marks, face ..."""

    kind: str
    candidate: int
    score: float
    detail: str = ""


class Binding(Value):
    """The decision which candidate is the entity. `margin` is the lead over the runner-up, 0 to 1."""

    candidate: int
    rule: str
    margin: float
    evidence: tuple[BindingEvidence, ...] = ()


class GateFigure(Value):
    """The figure of one quality gate, the threshold it was held against, and whether it passed."""

    name: str
    value: float
    threshold: float | None = None
    passed: bool = True


class ModelRef(Value):
    """A model's name, pinned version or revision, and the sha256 of its weights ("" if it has none)."""

    role: str
    name: str
    version: str = ""
    weights_sha256: str = ""


class ImageAnnotation(Value):
    """The entity's mask in one image of the question."""

    image: str
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    rle: Rle
    candidates: tuple[BoxRecord, ...] = ()
    binding: Binding
    gates: tuple[GateFigure, ...] = ()


class Annotation(Record):
    """The masks of one question, one per image and in the same order."""

    id: str
    question_id: str
    images: tuple[ImageAnnotation, ...]
    models: tuple[ModelRef, ...] = ()
    portable: bool = False

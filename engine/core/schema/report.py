"""Records of a score report: figures with their uncertainty, and the per-sample counts they are sums of.

All figures are shares between 0 and 1 and are printed as percent. A figure that is 0/0 is None, never 0 and
never NaN. What the figures mean (conventions, units, failures) is said in `inference.metrics`; nothing is
computed here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from engine.core.schema.annotation import ModelRef
from engine.core.schema.base import Record, Value, canonical_json
from engine.core.schema.question import BlindAnswer
from engine.core.schema.sampletexts import PackedTexts, SampleTexts

Convention = Literal["lisa", "gres", "seg-zero"]
UnitStatus = Literal["scored", "failed", "missing"]


def _packed(values: object) -> Sequence[int]:
    if isinstance(values, array):
        return values
    if not isinstance(values, (list, tuple)):
        raise ValueError("a list of whole numbers is expected")
    try:
        return array("q", values)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"a list of whole numbers is expected: {error}") from error


#: Whole numbers as one block of memory: a report holds millions.
Numbers = Annotated[Sequence[int], PlainValidator(_packed), PlainSerializer(list, return_type=list[int])]


class Estimate(Value):
    """A figure with its 95 % interval; `low` and `high` are None where there are too few clusters for one."""

    value: float | None
    low: float | None = None
    high: float | None = None


class ScoreRow(Value):
    """The figures of one segmenter against one truth on one part of the data.

    `split` and `part` are "" for everything, else the name of a tag and its value ("domain", "Sports").
    `units` are (image, mask) pairs; those that `failed` or are `missing` are in no sum of `figures`, while
    `strict` counts them as a wrong mask: nothing met, the truth's pixels in the union.
    """

    segmenter: str
    kind: Literal["segmenter", "baseline"] = "segmenter"
    truth: str
    split: str = ""
    part: str = ""
    samples: int
    units: int
    scored: int
    failed: int = 0
    missing: int = 0
    failures: dict[str, int] = Field(default_factory=dict)
    figures: dict[str, Estimate] = Field(default_factory=dict)
    strict: dict[str, Estimate] = Field(default_factory=dict)

    def value(self, metric: str) -> float | None:
        """A figure's value, None if it was not computed or is 0/0."""
        found = self.figures.get(metric)
        return found.value if found else None


class UnitScores(Value):
    """Counts per (image, mask) pair, as columns of one length. `sample` is the place in the report's `samples`.

    Pixels the truth ignores are in none of the counts but `ignored` and `predicted_ignored`; `said_none` is 1 where
    the segmenter said that nothing is there; `iou` is as the report's convention counts it, None where the pair is
    in no sum.
    """

    segmenter: str
    truth: str
    sample: Numbers
    image: Numbers
    status: tuple[UnitStatus, ...]
    failure: tuple[str, ...]
    intersection: Numbers
    union: Numbers
    target: Numbers
    predicted: Numbers
    ignored: Numbers
    predicted_ignored: Numbers
    pixels: Numbers
    said_none: Numbers
    iou: tuple[float | None, ...]

    @model_validator(mode="after")
    def _even(self) -> UnitScores:
        columns = (self.image, self.status, self.intersection, self.union, self.target, self.predicted)
        more = (self.failure, self.ignored, self.predicted_ignored, self.pixels, self.said_none, self.iou)
        if any(len(column) != len(self.sample) for column in (*columns, *more)):
            raise ValueError(f"the columns of the scores of {self.segmenter} differ in length")
        return self

    def pieces(self) -> Iterator[str]:
        """Canonical JSON, a column at a time."""
        for place, name in enumerate(sorted(type(self).model_fields)):
            column = self.model_dump(mode="json", include={name})[name]
            yield f'{"," if place else "{"}"{name}":{canonical_json(column)}'
        yield "}"


class AnswerScores(Value):
    """Per-sample verdicts on a segmenter's answers, in the order of the report's `samples`; None where it gave no
    answer (`judged` is empty where no judge was asked)."""

    segmenter: str
    answer: tuple[str | None, ...]
    correct: tuple[float | None, ...]
    f1: tuple[float | None, ...]
    judged: tuple[float | None, ...] = ()


class Comparison(Value):
    """Figure of `first` minus that of `second` on the units both answered, paired and clustered by image.

    `p_value` is of a two-sided sign-flip test over image clusters, for metrics that are means."""

    first: str
    second: str
    truth: str
    metric: str
    units: int
    difference: Estimate
    p_value: float | None = None


class TruthInfo(Value):
    """A set of masks that predictions were held against, and where it comes from."""

    name: str
    description: str = ""


class SegmenterInfo(Value):
    """A scored segmenter: its models with their pinned versions, and the digest of its predictions."""

    name: str
    models: tuple[ModelRef, ...] = ()
    predictions_sha256: str = ""
    knowledge_cutoff: str = ""
    note: str = ""


class NoveltyLabel(Record):
    """Whether a named model knows the entity of a sample without the news, with the replies that show it.

    "emerging": it named the entity in at least one reply; "novel": it never did; "unknown": no reply could be judged.
    """

    sample_id: str
    model: str
    label: Literal["novel", "emerging", "unknown"]
    evidence: tuple[BlindAnswer, ...] = ()


class ScoreReport(Record):
    """`report.json`: what was scored, how, and what came out."""

    dataset: str
    revision: str = ""
    digest: str = ""
    window: str = ""
    convention: Convention
    conventions: dict[str, str] = Field(default_factory=dict)
    unit: str = "(image, mask) pair"
    size_px: int | None = None
    seed: int = 0
    resamples: int = 0
    clusters: int = 0
    base_model: str = ""
    score_string: str = ""
    truths: tuple[TruthInfo, ...]
    segmenters: tuple[SegmenterInfo, ...] = ()
    rows: tuple[ScoreRow, ...]
    comparisons: tuple[Comparison, ...] = ()
    samples: SampleTexts = Field(default_factory=PackedTexts)
    units: tuple[UnitScores, ...] = ()
    answers: tuple[AnswerScores, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)

    def row(self, segmenter: str, *, truth: str = "", split: str = "", part: str = "") -> ScoreRow:
        """The row of a segmenter; `truth` "" is the first one. Raises KeyError where there is none."""
        wanted = truth or self.truths[0].name
        for row in self.rows:
            if (row.segmenter, row.truth, row.split, row.part) == (segmenter, wanted, split, part):
                return row
        raise KeyError(f"no row of {segmenter} against {wanted} for {split or 'everything'} {part}".strip())

    def line(self) -> str:
        return "".join(self.pieces())

    def pieces(self) -> Iterator[str]:
        """The line in pieces, so that a report of very many samples never lies in memory as text."""
        rest = self.model_dump(mode="json", exclude={"samples", "units"})
        for place, name in enumerate(sorted(type(self).model_fields)):
            yield f'{"," if place else "{"}"{name}":'
            if name == "samples":
                yield from _listed(one.model_dump() for one in self.samples)
            elif name == "units":
                yield "["
                for number, units in enumerate(self.units):
                    yield "," if number else ""
                    yield from units.pieces()
                yield "]"
            else:
                yield canonical_json(rest[name])
        yield "}"


def _listed(values: Iterable[object]) -> Iterator[str]:
    yield "["
    for number, value in enumerate(values):
        yield ("," if number else "") + canonical_json(value)
    yield "]"

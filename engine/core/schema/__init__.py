"""Everything that travels on disk or comes from outside, as frozen pydantic records."""

from engine.core.schema.annotation import (
    Annotation,
    Binding,
    BindingEvidence,
    BoxRecord,
    GateFigure,
    ImageAnnotation,
    ModelRef,
    Rle,
)
from engine.core.schema.base import Record, Value, canonical_json, why
from engine.core.schema.codes import Code, Stage
from engine.core.schema.news import Article, DateWitness, Domain, ImageClaim, ImageRef, Link, WitnessKind
from engine.core.schema.prediction import Failure, FailureKind, Prediction, Timing, TraceStep
from engine.core.schema.question import BlindAnswer, Check, Entity, EntityType, Question, QuestionKind, Writer
from engine.core.schema.rejected import FunnelStep, Rejected
from engine.core.schema.report import (
    AnswerScores,
    Comparison,
    Convention,
    Estimate,
    NoveltyLabel,
    ScoreReport,
    ScoreRow,
    SegmenterInfo,
    TruthInfo,
    UnitScores,
    UnitStatus,
)
from engine.core.schema.sampletexts import PackedTexts, SampleText
from engine.core.schema.snapshot import Erratum, FileDigest, Overlap, Sample, SnapshotManifest
from engine.core.schema.window import Window

__all__ = [
    "Annotation",
    "AnswerScores",
    "Article",
    "Binding",
    "BindingEvidence",
    "BlindAnswer",
    "BoxRecord",
    "Check",
    "Code",
    "Comparison",
    "Convention",
    "DateWitness",
    "Domain",
    "Entity",
    "EntityType",
    "Erratum",
    "Estimate",
    "Failure",
    "FailureKind",
    "FileDigest",
    "FunnelStep",
    "GateFigure",
    "ImageAnnotation",
    "ImageClaim",
    "ImageRef",
    "Link",
    "ModelRef",
    "NoveltyLabel",
    "Overlap",
    "PackedTexts",
    "Prediction",
    "Question",
    "QuestionKind",
    "Record",
    "Rejected",
    "Rle",
    "Sample",
    "SampleText",
    "ScoreReport",
    "ScoreRow",
    "SegmenterInfo",
    "SnapshotManifest",
    "Stage",
    "Timing",
    "TraceStep",
    "TruthInfo",
    "UnitScores",
    "UnitStatus",
    "Value",
    "Window",
    "WitnessKind",
    "Writer",
    "canonical_json",
    "why",
]

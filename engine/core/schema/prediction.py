"""Records of the predict stage: what a segmenter answered for a sample. Times are kept apart, see `Timing`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.core.schema.annotation import ModelRef, Rle
from engine.core.schema.base import Record, Value

FailureKind = Literal[
    "out_of_memory", "no_reply", "bad_reply", "refused", "no_mask_token", "no_mask", "no_box", "timeout", "error"
]


class Failure(Value):
    """Why there is no mask. A failure is counted apart and is never an empty mask."""

    kind: FailureKind
    detail: str = ""


class TraceStep(Value):
    """What one module did for one sample: plain text in, plain text out, and named values as text."""

    module: str
    input: str = ""
    output: str = ""
    values: dict[str, str] = Field(default_factory=dict)


class Prediction(Record):
    """The masks for one sample, aligned with its images; None where the segmenter failed on that image.

    `no_target` says per image whether the segmenter declared that nothing is there; where it is empty or None,
    an empty mask counts as that.
    """

    sample_id: str
    segmenter: str
    masks: tuple[Rle | None, ...]
    failures: tuple[Failure | None, ...] = ()
    no_target: tuple[bool | None, ...] = ()
    answer: str | None = None
    text: str = ""
    trace: tuple[TraceStep, ...] = ()
    models: tuple[ModelRef, ...] = ()


class Timing(Record):
    """Seconds and cost per module for one sample; written beside the predictions, in no digest."""

    sample_id: str
    segmenter: str
    module: str
    seconds: float
    usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

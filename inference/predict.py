"""The predict stage: samples through a runner, into records. Times and cost come out apart, see `Timing`.

A failure is written with its kind and is never an empty mask. What goes wrong for the whole run (a search or a model
out of reach) is an exception, so that the shard stays undone and is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.config import ScoreSection
from engine.core.errors import TerminalError
from engine.core.geometry import Mask
from engine.core.masks import encode_rle
from engine.core.protocols import EvalItem, Segmented
from engine.core.schema import Failure, Prediction, Timing
from inference.segmenters.base import Runner

#: Raised whenever a prediction could differ for the same samples, config and models.
VERSION = "1"


@dataclass(frozen=True, slots=True)
class PredictDeps:
    """The runner that answers; how many samples it has in flight is its own setting."""

    runner: Runner


async def run(
    shard: Sequence[EvalItem], config: ScoreSection, *, deps: PredictDeps
) -> tuple[list[Prediction], list[Timing]]:
    """Predictions of a shard, sorted by sample id, and the seconds and cost per module.

    `config.shard_samples` bounds what is given to the runner in one go. Raises what the runner raises.
    """
    predictions: list[Prediction] = []
    timings: list[Timing] = []
    models = deps.runner.models()
    step = config.shard_samples
    for start in range(0, len(shard), step):
        part = shard[start : start + step]
        results = await deps.runner.run(part)
        if len(results) != len(part):
            raise TerminalError(f"{deps.runner.name} gave {len(results)} results for {len(part)} samples")
        for item, result in zip(part, results, strict=True):
            masks, failures = _pairs(item, result)
            predictions.append(
                Prediction(
                    sample_id=item.sample_id,
                    segmenter=deps.runner.name,
                    masks=tuple(encode_rle(mask) if mask is not None else None for mask in masks),
                    failures=failures,
                    answer=result.answer,
                    text=result.text,
                    trace=result.trace,
                    models=models,
                )
            )
            timings += result.timings
    predictions.sort(key=lambda prediction: prediction.sample_id)
    timings.sort(key=lambda timing: (timing.sample_id, timing.module))
    return predictions, timings


def _pairs(item: EvalItem, result: Segmented) -> tuple[list[Mask | None], tuple[Failure | None, ...]]:
    """Masks and failures per image; a result that has neither for an image is a failure of kind `error`."""
    masks: list[Mask | None] = []
    failures: list[Failure | None] = []
    for place, image in enumerate(item.images):
        mask = result.masks[place] if place < len(result.masks) else None
        failure = result.failures[place] if place < len(result.failures) else None
        if mask is None and failure is None:
            failure = Failure(kind="error", detail="the segmenter gave no mask and no reason")
        elif mask is not None and mask.shape != image.shape[:2]:
            told = f"a mask of {mask.shape[0]}x{mask.shape[1]} for an image of {image.shape[0]}x{image.shape[1]}"
            mask, failure = None, Failure(kind="error", detail=told)
        elif mask is not None:
            failure = None
        masks.append(mask)
        failures.append(failure)
    return masks, tuple(failures)

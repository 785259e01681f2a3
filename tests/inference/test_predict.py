"""The predict stage: records out of results, failures with their kind, order and bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.core.config import ScoreSection
from engine.core.errors import TerminalError
from engine.core.protocols import EvalItem, Segmented
from engine.core.schema import Failure, ModelRef, Prediction, Timing, TraceStep
from inference import predict

IMAGE = np.zeros((6, 8, 3), np.uint8)
MASK = np.ones((6, 8), bool)


class Giving:
    """A runner that gives what it was made with, and notes how many samples it gets at a time."""

    name = "giving"

    def __init__(self, **results: Segmented) -> None:
        self.results = results
        self.parts: list[int] = []

    def models(self) -> tuple[ModelRef, ...]:
        return (ModelRef(role="segmenter", name="giving", version="2"),)

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]:
        self.parts.append(len(items))
        return [self.results[item.sample_id] for item in items if item.sample_id in self.results]


def items(*names: str, images: int = 1) -> list[EvalItem]:
    return [EvalItem(name, "?", (IMAGE,) * images) for name in names]


async def test_records_hold_masks_failures_trace_and_models() -> None:
    refused = Failure(kind="refused", detail="no")
    timing = Timing(sample_id="b", segmenter="giving", module="segmenter", seconds=1.5)
    good = Segmented((MASK, None), (None, refused), "Ada", "said", (TraceStep(module="m"),), (timing,))
    found, timings = await predict.run(items("b", images=2), ScoreSection(), deps=predict.PredictDeps(Giving(b=good)))
    (record,) = found
    assert record.failures == (None, refused)
    assert record.masks[1] is None
    assert (record.answer, record.text, record.models[0].version) == ("Ada", "said", "2")
    assert timings == [timing]
    assert "1.5" not in record.line()
    assert Prediction.model_validate_json(record.line()) == record


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (Segmented((None,)), "no mask and no reason"),
        (Segmented(()), "no mask and no reason"),
        (Segmented((MASK[:3],)), "3x8 for an image of 6x8"),
    ],
)
async def test_a_result_that_keeps_the_contract_badly_is_a_failure(result: Segmented, told: str) -> None:
    ((record,), _) = await predict.run(items("a"), ScoreSection(), deps=predict.PredictDeps(Giving(a=result)))
    assert record.masks == (None,)
    assert record.failures[0] is not None
    assert record.failures[0].kind == "error"
    assert told in record.failures[0].detail


async def test_samples_come_in_parts_and_go_out_sorted() -> None:
    names = [f"s{n}" for n in (4, 1, 3, 0, 2)]
    runner = Giving(**{name: Segmented((MASK,)) for name in names})
    found, _ = await predict.run(items(*names), ScoreSection(shard_samples=2), deps=predict.PredictDeps(runner))
    assert [record.sample_id for record in found] == sorted(names)
    assert runner.parts == [2, 2, 1]


async def test_a_runner_that_loses_samples_ends_the_run() -> None:
    with pytest.raises(TerminalError, match="gave 1 results for 2 samples"):
        await predict.run(items("a", "b"), ScoreSection(), deps=predict.PredictDeps(Giving(a=Segmented((MASK,)))))

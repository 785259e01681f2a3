"""An optional judge: a model says whether an answer names the entity, for answers that no alias covers.

Exact matches need no judge and are not sent. The judge's verdicts are a figure of their own ("judged") and never
replace the exact one; a reply that is refused, cut or failed leaves the answer unjudged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from engine.core.protocols import ChatModel, ChatRequest
from engine.core.schema import Prediction
from inference.benchmarks.base import Benchmark
from inference.metrics.answers import exact

SYSTEM = (
    "You decide whether an answer names the same person, product or thing as the reference. Another spelling, a "
    "nickname or a full form of the same name counts; a description, a category, or a list of several names does not."
)
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}


async def judge(
    benchmark: Benchmark, predictions: Iterable[Prediction], model: ChatModel, *, max_in_flight: int = 8
) -> dict[str, bool]:
    """Verdicts by sample id for the predictions that have an answer; for `score(judged={segmenter: ...})`."""
    truths = {one.id: (one.question, one.answer, one.aliases) for one in benchmark.without_images()}
    verdicts: dict[str, bool] = {}
    open_ones: list[tuple[str, str]] = []
    for prediction in predictions:
        if prediction.answer is None or prediction.sample_id not in truths:
            continue
        _, answer, aliases = truths[prediction.sample_id]
        if exact(prediction.answer, (answer, *aliases)):
            verdicts[prediction.sample_id] = True
        else:
            open_ones.append((prediction.sample_id, prediction.answer))
    gate = asyncio.Semaphore(max_in_flight)

    async def one(sample_id: str, given: str) -> tuple[str, bool | None]:
        question, answer, aliases = truths[sample_id]
        known = f" (also known as {', '.join(aliases)})" if aliases else ""
        user = f"Question: {question}\nReference: {answer}{known}\nAnswer: {given}"
        async with gate:
            reply = await model.complete(
                ChatRequest(
                    system=SYSTEM, user=user, schema=SCHEMA, schema_name="verdict", max_tokens=50, purpose="judge"
                )
            )
        same = reply.data.get("same") if reply.status == "ok" and reply.data else None
        return sample_id, same if isinstance(same, bool) else None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(sample_id, given)) for sample_id, given in open_ones]
    for task in tasks:
        sample_id, same = task.result()
        if same is not None:
            verdicts[sample_id] = same
    return verdicts

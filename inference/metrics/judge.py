"""An optional judge: a model says whether an answer names the entity, for answers that no alias covers.

Exact matches need no judge and are not sent. The judge's verdicts are a figure of their own ("judged") and never
replace the exact one; a reply that is refused, cut or failed leaves the answer unjudged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.core.protocols import ChatModel, ChatRequest
from engine.core.schema import Prediction, canonical_json
from engine.core.together import together
from inference.benchmarks.base import Benchmark
from inference.metrics.answers import exact

SYSTEM = (
    "You decide whether an answer names the same person, product or thing as the reference. Another spelling, a "
    "nickname or a full form of the same name counts; a description, a category, or a list of several names does not."
)
QUESTION = "Question: {question}\nReference: {reference}\nAnswer: {answer}"
MAX_TOKENS = 50
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """`verdicts` by sample id, those of exact matches among them; `asked` answers were sent, `unjudged` of them got no
    verdict."""

    verdicts: dict[str, bool]
    asked: int
    unjudged: int


def digest() -> str:
    """16 hex digits of how the judge is asked."""
    return hashlib.sha256(canonical_json([SYSTEM, SCHEMA, QUESTION, MAX_TOKENS]).encode()).hexdigest()[:16]


async def judge(
    benchmark: Benchmark, predictions: Iterable[Prediction], model: ChatModel, *, at_a_time: int = 256
) -> Judged:
    """Verdicts for the predictions that have an answer; for `score(judged={segmenter: verdicts})`.

    So many answers are put to the model at a time; how many requests are under way is the model's own limit. Raises
    what the model's client raises, after the others of the batch have ended.
    """
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

    async def one(sample_id: str, given: str) -> tuple[str, bool | None]:
        question, answer, aliases = truths[sample_id]
        known = f" (also known as {', '.join(aliases)})" if aliases else ""
        user = QUESTION.format(question=question, reference=f"{answer}{known}", answer=given)
        reply = await model.complete(
            ChatRequest(
                system=SYSTEM,
                user=user,
                schema=SCHEMA,
                schema_name="verdict",
                max_tokens=MAX_TOKENS,
                purpose="judge",
            )
        )
        same = reply.data.get("same") if reply.status == "ok" and reply.data else None
        return sample_id, same if isinstance(same, bool) else None

    unjudged = 0
    for start in range(0, len(open_ones), at_a_time):
        for sample_id, same in await together(one(*told) for told in open_ones[start : start + at_a_time]):
            if same is None:
                unjudged += 1
            else:
                verdicts[sample_id] = same
    return Judged(verdicts, len(open_ones), unjudged)

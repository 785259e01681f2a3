"""Whether answers that no alias covers name the entity, as the model of `[score] judge_model` sees it.

Its verdicts are a figure of their own beside the exact one ("judged"). Replies lie in the cache of the language models,
so that a report that is made again asks nobody; what they cost is in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError

if TYPE_CHECKING:
    from engine.core.config import LlmSection
    from engine.core.schema import Prediction
    from engine.llm.client import OpenAIChat
    from flows.stages.score import Task
    from inference.benchmarks.base import Benchmark
    from inference.metrics.judge import Judged


def key_of(task: Task) -> dict[str, object]:
    """What of the judge decides a report: its model with the settings of the requests, and how it is asked; {} where
    none is named."""
    from engine.llm.asking import chat_settings
    from inference.metrics.judge import digest

    return {"asked": digest(), **chat_settings(_section(task))} if task.config.score.judge_model else {}


async def verdicts(
    task: Task, benchmark: Benchmark, predictions: Mapping[str, Iterable[Prediction]]
) -> dict[str, Judged]:
    """What the judge says of each segmenter's answers; {} where none is named. Raises `ConfigError` without a key, and
    what the model's client raises."""
    from inference.metrics.judge import judge

    if not task.config.score.judge_model:
        return {}
    found = {}
    async with _chat(task) as chat:
        for name, stream in predictions.items():
            found[name] = await judge(benchmark, stream, chat)
        await chat.vouch()
    return {name: one for name, one in found.items() if one.verdicts or one.unjudged}


def notes(task: Task, found: Mapping[str, Judged]) -> list[str]:
    """One sentence per segmenter for the report: who judged, and how many answers stayed without a verdict."""
    told = []
    for name, one in found.items():
        lost = f"; {one.unjudged} answers stay without a verdict" if one.unjudged else ""
        told.append(f"{name}: {task.config.score.judge_model} judged {one.asked} answers that match no alias{lost}")
    return told


def _chat(task: Task) -> OpenAIChat:
    from engine.llm.client import OpenAIChat
    from engine.llm.ledger import Ledger
    from engine.llm.offline import RecordedChat
    from flows.wiring import openai_key

    config, home, section = task.config, task.home, _section(task)
    if config.score.offline:
        return RecordedChat(section, cache=home.cache("llm"))
    key = openai_key()
    if not key:
        raise ConfigError(f"OPENAI_API_KEY is not set: [score] judge_model '{section.model}' needs the endpoint's key")
    return OpenAIChat(section, api_key=key, cache=home.cache("llm"), ledger=Ledger.of(config.llm, home.root / "ledger"))


def _section(task: Task) -> LlmSection:
    return task.config.llm.model_copy(update={"model": task.config.score.judge_model, "sees_images": False})

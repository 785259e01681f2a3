"""What a named model knows without the news, kept per dataset and model, and used as the split of the scores.

The labels with their evidence lie in `<home>/novelty/<dataset>/<model>.jsonl`; asking again asks only for what is
missing. `[score] novelty_model` names the model whose labels tell novel from emerging.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError
from engine.core.store import Home, sha256_file

if TYPE_CHECKING:
    from engine.core.schema import NoveltyLabel
    from flows.stages.score import Task
    from inference.benchmarks.base import Benchmark

#: Labels are written after so many samples, so that an interrupted run loses few replies.
EVERY = 64


def place(home: Home, dataset: str, model: str) -> Path:
    """Where the labels of a model lie."""
    return home.root / "novelty" / dataset / f"{re.sub(r'[^A-Za-z0-9.+-]', '_', model)}.jsonl"


async def ask(task: Task, model: str, *, base_url: str = "") -> list[NoveltyLabel]:
    """Labels of every sample, asked for where they are not known. Raises `ConfigError` without a key."""
    from engine.llm.client import OpenAIChat
    from engine.llm.ledger import Ledger
    from flows.wiring import openai_key
    from inference.metrics.novelty import probe, read_labels, write_labels

    config, home = task.config, task.home
    path = place(home, task.name, model)
    known = read_labels(path) if path.is_file() else []
    update: dict[str, object] = {"model": model, "sees_images": True}
    if base_url:
        update["base_url"] = base_url
    section = config.llm.model_copy(update=update)
    key = openai_key()
    if not key:
        raise ConfigError("there is no key for the model: set OPENAI_API_KEY (any value for a server of your own)")
    ledger = Ledger.of(config.llm, home.root / "ledger")
    found: list[NoveltyLabel] = []
    async with OpenAIChat(section, api_key=key, cache=home.cache("llm"), ledger=ledger) as chat:
        async for label in probe(task.open(), chat, known=known, max_in_flight=config.llm.max_in_flight):
            found.append(label.model_copy(update={"model": model}))
            if len(found) % EVERY == 0:
                write_labels(path, [*found, *known[len(found) :]])
    write_labels(path, found)
    return found


def labelled(task: Task, benchmark: Benchmark) -> Benchmark:
    """The benchmark with the labels of `[score] novelty_model`. Raises `ConfigError` where they were not asked for."""
    from inference.metrics.novelty import read_labels, with_labels

    model = task.config.score.novelty_model
    if not model:
        return benchmark
    path = place(task.home, task.name, model)
    if not path.is_file():
        raise ConfigError(
            f"[score] novelty_model is {model}: ask it first with 'nest novelty {task.name} --model {model}'"
        )
    return with_labels(benchmark, read_labels(path))


def digest(task: Task) -> str:
    """sha256 of the labels that the configuration asks for, "" if there are none."""
    path = place(task.home, task.name, task.config.score.novelty_model)
    return sha256_file(path) if task.config.score.novelty_model and path.is_file() else ""

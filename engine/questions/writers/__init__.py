"""Who writes the questions: `llm`, `template`, or a plugin of the entry-point group `nest.writers`.

A plugin's entry point is a function `(config: AskSection, chat: ChatModel | None) -> QuestionWriter`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from engine.core.config import AskSection, LlmSection
from engine.core.errors import ConfigError
from engine.core.protocols import Blobs, ChatModel
from engine.questions.draft import Draft, QuestionWriter

__all__ = ["Draft", "QuestionWriter", "make_writer", "uses_chat", "writer_key", "writer_names"]

GROUP = "nest.writers"
_BUILT_IN = ("llm", "template")


def writer_names() -> list[str]:
    """All writers that can be named in `[ask] writer`."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def uses_chat(config: AskSection) -> bool:
    """Whether the writer needs a chat model (a plugin gets one if there is one)."""
    return config.writer == "llm"


def make_writer(config: AskSection, *, chat: ChatModel | None, blobs: Blobs | None = None) -> QuestionWriter:
    """The writer that the config names. `blobs` is given where the model sees images.

    Raises `ConfigError` for an unknown name, a writer that needs a model and has none, or an unknown prompt.
    """
    if config.writer == "template":
        from engine.questions.recognise import make_recogniser
        from engine.questions.writers.template import TemplateWriter

        return TemplateWriter(make_recogniser(config.recogniser))
    if config.writer == "llm":
        from engine.questions.writers.llm import LlmWriter

        if chat is None:
            raise ConfigError("[ask] writer is 'llm' and there is no chat model: set [llm] model and OPENAI_API_KEY")
        return LlmWriter.of(config, chat, blobs=blobs)
    point = _plugin(config.writer)
    try:
        make: Callable[..., QuestionWriter] = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the writer '{config.writer}' ({point.value}) cannot be loaded: {error}") from error
    return make(config, chat)


def writer_key(config: AskSection, llm: LlmSection) -> dict[str, Any]:
    """What of writer, prompt and model decides the stage's result; a part of its key."""
    told: dict[str, Any] = {"ask": config.keyed(), "writer": config.writer}
    if config.writer == "template":
        # neither prompt nor model has a say
        told["ask"].pop("prompt")
        told["version"] = import_module("engine.questions.writers.template").VERSION
        if config.recogniser:
            told["recogniser"] = import_module("engine.questions.recognise").recogniser_version(config.recogniser)
        return told
    # others read captions by themselves
    told["ask"].pop("recogniser")
    told["llm"] = llm.keyed()
    if config.writer == "llm":
        from engine.llm.prompts import load_prompt

        told["version"] = import_module("engine.questions.writers.llm").VERSION
        told["prompt"] = load_prompt("engine.questions", config.prompt).digest
    else:
        point = _plugin(config.writer)
        told["version"] = f"{point.value} {point.dist.version if point.dist else ''}".strip()
    return told


def known_writer(name: str) -> str:
    """The name again. Raises `ConfigError` with the nearest one for a writer that is neither built in nor installed."""
    if name not in writer_names():
        _plugin(name)
    return name


def _plugin(name: str) -> EntryPoint:
    found = [point for point in entry_points(group=GROUP) if point.name == name]
    if found:
        return found[0]
    known = writer_names()
    near = difflib.get_close_matches(name, known, n=1)
    hint = f", did you mean '{near[0]}'?" if near else "."
    raise ConfigError(f"there is no question writer '{name}'{hint} Known are {', '.join(known)}")

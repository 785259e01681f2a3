"""Wiring the ask stage: which models the config asks for, and the deps made of them.

Kept beside the stage so that a new check's needs are met in one place; opening clients is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.core.config import AskSection, LlmSection
from engine.core.errors import ConfigError
from engine.core.protocols import Blobs, ChatModel, Search
from engine.core.schema import Article
from engine.questions.ask import AskDeps
from engine.questions.checks.known import Blind
from engine.questions.checks.readable import ModelReader
from engine.questions.encyclopedia import Encyclopedia
from engine.questions.index import NewsIndex
from engine.questions.writers import make_writer, uses_chat


def needs_chat(config: AskSection) -> bool:
    """Whether the stage needs the [llm] model at all."""
    return uses_chat(config) or config.read_images


def blind_llm(config: AskSection, llm: LlmSection) -> LlmSection | None:
    """The section for the model that answers without the news; None if none is asked for."""
    if not config.blind_model:
        return None
    return llm.model_copy(update={"model": config.blind_model, "sees_images": config.blind_sees_images})


def make_deps(
    config: AskSection,
    llm: LlmSection,
    *,
    chat: ChatModel | None,
    blind: ChatModel | None = None,
    blobs: Blobs | None = None,
    search: Search | None = None,
    articles: Iterable[Article] = (),
) -> AskDeps:
    """Deps for `run` over any shard of `articles` (the whole window's, for roles that two publishers state). `search`
    finds encyclopedia entries where `[ask] encyclopedia` names a provider.

    Raises `ConfigError` where the config asks for something that was not given.
    """
    if config.read_images and (chat is None or blobs is None or not llm.sees_images):
        raise ConfigError("[ask] read_images needs a chat model that sees images: set [llm] model and sees_images")
    if config.blind_model and blind is None:
        raise ConfigError(f"[ask] blind_model is '{config.blind_model}' and no such chat model was given")
    if config.encyclopedia and search is None:
        raise ConfigError(f"[ask] encyclopedia is {', '.join(config.encyclopedia)} and no such search was given")
    pictures = blobs if llm.sees_images else None
    return AskDeps(
        writer=make_writer(config, chat=chat, blobs=pictures),
        blobs=blobs,
        encyclopedia=Encyclopedia(search) if search is not None else None,
        blind=Blind(blind, blobs=blobs, sees_images=config.blind_sees_images) if blind is not None else None,
        reader=ModelReader(chat, blobs) if config.read_images and chat is not None and blobs is not None else None,
        index=NewsIndex(articles),
        # the model's own limit is the narrower one
        max_in_flight=max(32, llm.max_in_flight),
    )

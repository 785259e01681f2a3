"""Where the outside world is plugged into the stages: config in, clients and models out.

Secrets are read from the environment here and handed down as values; nothing else reads them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from engine.core.schema import Article
from flows.run import Run

if TYPE_CHECKING:
    from engine.core.config import Config, LlmSection
    from engine.core.store import Home
    from engine.llm.client import OpenAIChat
    from engine.news.deps import NewsDeps
    from engine.questions.ask import AskDeps
    from engine.web.search.local import LocalIndex
    from inference.segmenters.deps import InferenceDeps
    from segmentation.annotate import AnnotateDeps

OPENAI_KEY = "OPENAI_API_KEY"
HUB_TOKEN = "HF_TOKEN"


def hub_token() -> str | None:
    return os.environ.get(HUB_TOKEN) or None


def openai_key() -> str | None:
    return os.environ.get(OPENAI_KEY) or None


@asynccontextmanager
async def news_deps(run: Run) -> AsyncIterator[NewsDeps]:
    """The guarded web client with its cache, and the blobs."""
    from engine.news.deps import NewsDeps
    from engine.web.client import WebClient

    async with WebClient(run.config.collect, cache=run.home.cache("http")) as client:
        yield NewsDeps(fetcher=client, blobs=run.home.blobs)


@asynccontextmanager
async def ask_deps(run: Run, articles: Sequence[Article]) -> AsyncIterator[AskDeps]:
    """The writer and the checks that the config names, with the chat models they need."""
    from engine.questions.deps import blind_llm, make_deps, needs_chat

    config = run.config
    async with AsyncExitStack() as stack:
        chat = await stack.enter_async_context(_chat(config, run.home)) if needs_chat(config.ask) else None
        section = blind_llm(config.ask, config.llm)
        blind = await stack.enter_async_context(_chat(config, run.home, section)) if section else None
        yield make_deps(config.ask, config.llm, chat=chat, blind=blind, blobs=run.home.blobs, articles=articles)


def annotate_deps(run: Run) -> AnnotateDeps:
    """Detector, mask model, embedder and references that the config names."""
    from segmentation.annotate import AnnotateDeps
    from segmentation.references import FolderReferences
    from segmentation.registry import make_detector, make_embedder, make_mask_model

    config, weights = run.config.annotate, run.weights
    references = FolderReferences(run.references) if run.references else None
    return AnnotateDeps(
        detector=make_detector(config, weights_dir=weights),
        mask_model=make_mask_model(config, weights_dir=weights),
        blobs=run.home.blobs,
        embedder=make_embedder(config, weights_dir=weights),
        references=references,
    )


@asynccontextmanager
async def inference_deps(config: Config, home: Home, run: Run | None, *, name: str) -> AsyncIterator[InferenceDeps]:
    """What the segmenter `name` may use: search over the window's own news, the chat model, the weights' folder."""
    from inference.segmenters.deps import InferenceDeps

    wrapped = name.startswith(("rose:", "search-chat:"))
    async with AsyncExitStack() as stack:
        search = _local_index(run) if run is not None and wrapped and "local" in config.rose.search else None
        if search is not None:
            stack.callback(search.close)
        chat = None
        if config.llm.model and openai_key():
            chat = await stack.enter_async_context(_chat(config, home))
        told = config.annotate.weights_dir
        yield InferenceDeps(
            search=search,
            chat=chat,
            search_chat=chat,
            vision_chat=chat if config.llm.sees_images else None,
            weights_dir=config.resolve(told) if told else home.weights,
        )


def _chat(config: Config, home: Home, section: LlmSection | None = None) -> OpenAIChat:
    from engine.llm.client import OpenAIChat
    from engine.llm.ledger import Ledger

    ledger = Ledger(home.root / "ledger")
    return OpenAIChat(section or config.llm, api_key=openai_key(), cache=home.cache("llm"), ledger=ledger)


def index_digest(run: Run) -> str:
    """One digest of what the local index is made of: the window's articles and the reference pictures."""
    from engine.core.store import sha256_bytes
    from engine.web.search.local import VERSION
    from flows.stages import collect
    from segmentation.references import folder_digest

    articles = collect.place(run)
    known = articles.digests() if articles.finished else ()
    told = "\n".join([VERSION, *known, folder_digest(run.references) if run.references else ""])
    return sha256_bytes(told.encode())[:16]


def _local_index(run: Run) -> LocalIndex | None:
    """The index of the window's articles and the reference pictures; built once per state of both."""
    from engine.web.search.local import LocalIndex
    from flows.stages import collect

    articles = collect.place(run)
    if not articles.finished:
        return None
    path = run.home.cache("search") / f"{index_digest(run)}.sqlite"
    if path.is_file():
        return LocalIndex(path, blobs=run.home.blobs)
    return LocalIndex.build(path, articles.iterate(Article), blobs=run.home.blobs, references=run.references)

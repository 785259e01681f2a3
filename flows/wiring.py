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
    from engine.news.deps import NewsDeps
    from engine.questions.ask import AskDeps
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
    """The writer that the config names, with a chat model behind it if it needs one."""
    from engine.questions.ask import AskDeps

    from engine.questions.writers import make_writer, needs_chat

    async with AsyncExitStack() as stack:
        chat = None
        if needs_chat(run.config.ask):
            from engine.llm.client import OpenAIChat
            from engine.llm.ledger import Ledger

            ledger = Ledger(run.home.root / "ledger")
            chat = await stack.enter_async_context(
                OpenAIChat(run.config.llm, api_key=openai_key(), cache=run.home.cache("llm"), ledger=ledger)
            )
        yield AskDeps(writer=make_writer(run.config.ask, chat=chat), blobs=run.home.blobs, articles=tuple(articles))


def annotate_deps(run: Run) -> AnnotateDeps:
    """Detector, mask model, embedder and references that the config names."""
    from segmentation.annotate import AnnotateDeps
    from segmentation.references import FolderReferences
    from segmentation.registry import make_detector, make_embedder, make_mask_model

    config = run.config.annotate
    weights = run.config.resolve(config.weights_dir) if config.weights_dir else run.home.weights
    references = FolderReferences(run.config.resolve(config.references)) if config.references else None
    return AnnotateDeps(
        detector=make_detector(config, weights_dir=weights),
        mask_model=make_mask_model(config, weights_dir=weights),
        blobs=run.home.blobs,
        embedder=make_embedder(config, weights_dir=weights),
        references=references,
    )

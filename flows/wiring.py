"""Where the outside world is plugged into the stages: config in, clients and models out.

Secrets are read from the environment here and handed down as values; nothing else reads them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.schema import Article
from flows.run import Run

if TYPE_CHECKING:
    from engine.core.config import Config, LlmSection, RoseSection
    from engine.core.protocols import Search
    from engine.core.store import Home
    from engine.llm.client import OpenAIChat
    from engine.llm.ledger import Ledger
    from engine.news.deps import NewsDeps
    from engine.web.search.local import LocalIndex
    from engine.web.search.pages import ReadPage
    from engine.web.search.registry import SearchSet
    from segmentation.annotate import AnnotateDeps

OPENAI_KEY = "OPENAI_API_KEY"
HUB_TOKEN = "HF_TOKEN"


def hub_token() -> str | None:
    return os.environ.get(HUB_TOKEN) or None


def openai_key() -> str | None:
    return os.environ.get(OPENAI_KEY) or None


@asynccontextmanager
async def news_deps(run: Run) -> AsyncIterator[NewsDeps]:
    """The guarded web client with its cache, the blobs, what the harvest remembered, and photos known from before."""
    from engine.news.deps import NewsDeps
    from engine.news.harvest import Harvested
    from engine.news.readers import readers
    from engine.web.client import WebClient

    async with (
        WebClient(run.config.collect, cache=run.home.cache("http")) as client,
        readers(run.config.collect.processes) as reading,
    ):
        yield NewsDeps(
            fetcher=client,
            blobs=run.home.blobs,
            memory=Harvested(run.home.harvest),
            known_photos=_known_photos(run),
            readers=reading,
        )


def _known_photos(run: Run) -> tuple[str, ...]:
    """Perceptual hashes of photos in snapshots of earlier windows: an image like one of them is archive material."""
    from flows.stages.snapshot import earlier

    found: set[str] = set()
    for folder in earlier(run):
        import pyarrow.parquet as pq

        for path in sorted((folder / "provenance").glob("*.parquet")):
            for row in pq.read_table(path, columns=["image_phashes"]).to_pylist():
                found.update(value for value in row["image_phashes"] if value)
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class AskModels:
    """The outside world of the ask stage: the writing model, the one asked without the news, and the search."""

    chat: OpenAIChat | None
    blind: OpenAIChat | None
    search: Search | None


@asynccontextmanager
async def ask_models(run: Run, *, ledger: Ledger) -> AsyncIterator[AskModels]:
    """The chat models and the search that writer and checks of the configuration need, paying into one ledger."""
    from engine.questions.deps import blind_llm, needs_chat

    config = run.config
    async with AsyncExitStack() as stack:
        chat = (
            await stack.enter_async_context(_chat(config, run.home, ledger=ledger)) if needs_chat(config.ask) else None
        )
        section = blind_llm(config.ask, config.llm)
        blind = await stack.enter_async_context(_chat(config, run.home, section, ledger=ledger)) if section else None
        search = None
        if config.ask.encyclopedia:
            told = config.rose.model_copy(update={"search": config.ask.encyclopedia, "image_entities": "none"})
            search = (await searches(config, run.home, run, stack, section=told, ledger=ledger)).search
        yield AskModels(chat, blind, search)


def annotate_deps(run: Run) -> AnnotateDeps:
    """Detector, mask model, embedder and references that the config names."""
    from segmentation.annotate import AnnotateDeps
    from segmentation.references import FolderReferences
    from segmentation.registry import make_detector, make_embedder, make_faces, make_mask_model

    config, weights = run.config.annotate, run.weights
    references = FolderReferences(run.references) if run.references else None
    chat = None
    if config.marks:
        from segmentation.binding.marks import on_loop

        chat = _chat(run.config, run.home)
        on_loop(chat.__aenter__())  # it lives as long as the models, which is as long as the process
    return AnnotateDeps(
        detector=make_detector(config, weights_dir=weights),
        mask_model=make_mask_model(config, weights_dir=weights),
        blobs=run.home.blobs,
        embedder=make_embedder(config, weights_dir=weights),
        references=references,
        chat=chat,
        faces=make_faces(config, weights_dir=weights),
    )


async def searches(
    config: Config,
    home: Home,
    run: Run | None,
    stack: AsyncExitStack,
    *,
    section: RoseSection | None = None,
    ledger: Ledger,
) -> SearchSet:
    """The providers of `[rose] search` (or of `section`) in order: the local index over the window's news, services
    with their keys. What services answer is recorded, so that a finished evaluation can be repeated without them; with
    `[score] offline` the records are all there is."""
    from engine.web.client import WebClient
    from engine.web.search.registry import BRAVE_KEY, GOOGLE_KEY, SearchSet

    told = section or config.rose
    local = local_index(run) if run is not None and "local" in told.search else None
    if local is not None:
        stack.callback(local.close)
    offline = config.score.offline
    fetcher = None
    if set(told.search) != {"local"} and not offline:
        fetcher = await stack.enter_async_context(WebClient(config.collect, cache=home.cache("http")))
    found = SearchSet(
        told,
        local=local,
        secrets={key: os.environ[key] for key in (BRAVE_KEY, GOOGLE_KEY) if os.environ.get(key)},
        cache=home.cache("search"),
        fetcher=fetcher,
        read=_read_page if fetcher is not None else None,
        agent=config.collect.user_agent,
        offline=offline,
        meter=ledger.meter,
    )
    return await stack.enter_async_context(found)


def _read_page(body: bytes, url: str) -> ReadPage | None:
    """Pages that a search found are read by the collect stage's own extraction."""
    from engine.news.extract import read_article
    from engine.web.search.pages import page_of_article

    return page_of_article(read_article(body, url)[0])


def ledger_of(run: Run) -> Ledger:
    """One ledger for all paid calls of a stage, so that a limit covers them together; the month's is in its folder."""
    return _ledger(run.config, run.home)


def _ledger(config: Config, home: Home) -> Ledger:
    from engine.llm.ledger import Ledger

    return Ledger.of(config.llm, home.root / "ledger")


def _chat(config: Config, home: Home, section: LlmSection | None = None, *, ledger: Ledger | None = None) -> OpenAIChat:
    from engine.llm.client import OpenAIChat

    shared = ledger or _ledger(config, home)
    return OpenAIChat(section or config.llm, api_key=openai_key(), cache=home.cache("llm"), ledger=shared)


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


def local_index(run: Run) -> LocalIndex | None:
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

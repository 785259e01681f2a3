"""Going through the ask stage without paying live: what it would cost, and the same work by batches.

A planning chat answers from the cache and notes what lacks; that is what a dry run estimates and what a batch round
submits. Requests that depend on replies not there yet (a blind model's, a second try) come up in a later round. When a
round has nothing left, the ordinary run finds every reply in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.config import AskSection, LlmSection
from engine.core.protocols import Blobs, Search
from engine.core.schema import Article
from engine.llm.batch import DISCOUNT, BatchQueue, Progress
from engine.llm.client import OpenAIChat
from engine.llm.plan import Deferred, Estimate, PlanningChat, estimate
from engine.questions.ask import AskDeps, ask_article
from engine.questions.deps import blind_llm, make_deps
from engine.questions.index import NewsIndex


@dataclass(frozen=True, slots=True)
class Plan:
    """What a planning run found: articles that lack a reply, and the planning chats with the requests they noted."""

    lacking: int
    chat: PlanningChat
    blind: PlanningChat | None

    def estimates(self, llm: LlmSection, *, batch: bool = False) -> list[Estimate]:
        """What the noted requests cost, the writer's model first."""
        chats = [self.chat, *([self.blind] if self.blind is not None else [])]
        return [estimate(chat, prices=llm.prices, discount=DISCOUNT if batch else 1.0) for chat in chats]


async def plan(articles: Sequence[Article], config: AskSection, *, deps: AskDeps) -> int:
    """How many articles lack a reply; the planning chats in `deps` hold the requests afterwards."""
    index = deps.index or NewsIndex(articles)
    lacking = 0
    for article in articles:
        try:
            await ask_article(article, config, deps=deps, index=index)
        except Deferred:
            lacking += 1
    return lacking


async def plan_window(
    articles: Sequence[Article],
    config: AskSection,
    llm: LlmSection,
    *,
    cache: Path,
    blobs: Blobs | None = None,
    search: Search | None = None,
) -> Plan:
    """Plan a whole window; nothing is sent to a model. `cache` is the live clients' reply cache.

    Without `search` no encyclopedia is asked, so that requests may lack which depend on what it would say.
    """
    if search is None:
        config = config.model_copy(update={"encyclopedia": ()})
    chat = PlanningChat(llm, cache=cache)
    section = blind_llm(config, llm)
    blind = PlanningChat(section, cache=cache) if section is not None else None
    deps = make_deps(config, llm, chat=chat, blind=blind, blobs=blobs, search=search, articles=articles)
    return Plan(await plan(articles, config, deps=deps), chat, blind)


async def batch_round(
    articles: Sequence[Article],
    config: AskSection,
    llm: LlmSection,
    *,
    chat: OpenAIChat,
    blind: OpenAIChat | None = None,
    folder: Path,
    blobs: Blobs | None = None,
    search: Search | None = None,
) -> Progress:
    """One visit to the batches of a window: collect what is ready, plan, submit what lacks.

    `folder` keeps the batches' records, one folder per model below it. With `waiting` and `submitted` at 0 the
    ordinary run has everything (but for `given_up`, which it asks live).
    """
    queues = [(queue, BatchQueue(queue, folder=folder / _safe(queue.name))) for queue in (chat, blind) if queue]
    parts = [await queue.advance({}) for _, queue in queues]
    found = await plan_window(articles, config, llm, cache=chat.cache.root, blobs=blobs, search=search)
    wanted = {found.chat.name: found.chat.wanted}
    if found.blind is not None:
        wanted[found.blind.name] = {**wanted.get(found.blind.name, {}), **found.blind.wanted}
    parts += [await queue.advance(wanted.get(client.name, {})) for client, queue in queues]
    return Progress(
        waiting=sum(part.waiting for part in parts[len(queues) :]),
        collected=sum(part.collected for part in parts),
        failed=sum(part.failed for part in parts),
        submitted=sum(part.submitted for part in parts),
        given_up=sum(part.given_up for part in parts[len(queues) :]),
    )


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in name)

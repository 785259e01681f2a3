"""Ask: questions about the named entities in the articles' images, written and checked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from engine.core.schema import Article, Question
from engine.core.store import StageDir, stage_key
from flows import console
from flows.run import Run
from flows.stages import collect
from flows.stages.base import Done, batches, clock, done, split

if TYPE_CHECKING:
    from engine.llm.plan import Estimate


def place(run: Run) -> StageDir | None:
    """Where the window's questions lie; None while the articles are not there."""
    from engine.questions.ask import VERSION
    from engine.questions.writers import writer_key

    before = collect.place(run)
    if not before.finished:
        return None
    config: dict[str, Any] = {"ask": run.config.ask.keyed(), "writer": writer_key(run.config.ask, run.config.llm)}
    return run.home.stage(run.window, "ask", stage_key("ask", VERSION, config, before.digests()))


def do(run: Run) -> Done:
    """Write the window's questions unless that is done."""
    collect.do(run)
    where = place(run)
    assert where is not None
    if where.finished:
        return done("ask", where, fresh=False)
    with where.lock():
        if where.finished:
            return done("ask", where, fresh=False)
        where.sweep()
        asyncio.run(_ask(run, where))
    return done("ask", where, fresh=True)


async def _ask(run: Run, where: StageDir) -> None:
    from engine.questions import ask
    from flows.wiring import ask_deps, ledger_of

    started = time.monotonic()
    articles = collect.place(run).read(Article)
    shards = batches(articles, run.config.ask.batch_articles)
    missing = [index for index in range(len(shards)) if not where.shard_done(index)]
    ledger = ledger_of(run)
    async with ask_deps(run, articles, ledger=ledger) as deps:
        with console.bar("ask", len(articles)) as bar:
            bar.step(len(articles) - sum(len(shards[index]) for index in missing))
            for index in missing:
                began = time.monotonic()
                kept, lost = split(await ask.run(shards[index], run.config.ask, deps=deps), Question)
                where.commit_shard(index, kept, lost, run=clock(began))
                bar.step(len(shards[index]))
    questions, rejected = where.read_shards(Question, len(shards))
    stories = {article.id: article.story for article in articles if article.story}
    kept, dropped = split(ask.reduce(questions, run.config.ask, stories=stories), Question)
    lost = [*rejected, *dropped]
    where.commit(
        kept, lost, stage="ask", found=len(kept) + len(lost), run={**clock(started), "ledger": ledger.summary()}
    )


def estimates(run: Run) -> list[Estimate]:
    """What the requests that are not paid yet would cost; empty if no model is asked or the articles are not there."""
    from engine.questions.deps import needs_chat
    from engine.questions.planning import plan_window

    before = collect.place(run)
    where = place(run)
    if not before.finished or not needs_chat(run.config.ask) or (where is not None and where.finished):
        return []
    articles = before.read(Article)
    plan = asyncio.run(
        plan_window(articles, run.config.ask, run.config.llm, cache=run.home.cache("llm"), blobs=run.home.blobs)
    )
    return plan.estimates(run.config.llm)

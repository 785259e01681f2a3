"""Ask: questions about the named entities in the articles' images, written and checked."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from engine.core.schema import Article, Question
from engine.core.store import StageDir, stage_key
from flows import console
from flows.run import Run
from flows.stages import collect
from flows.stages.base import Done, batches, clock, done, split


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
    from flows.wiring import ask_deps

    started = time.monotonic()
    articles = collect.place(run).read(Article)
    shards = batches(articles, run.config.ask.batch_articles)
    missing = [index for index in range(len(shards)) if not where.shard_done(index)]
    async with ask_deps(run, articles) as deps:
        with console.bar("ask", len(articles)) as bar:
            bar.step(len(articles) - sum(len(shards[index]) for index in missing))
            for index in missing:
                began = time.monotonic()
                kept, lost = split(await ask.run(shards[index], run.config.ask, deps=deps), Question)
                where.commit_shard(index, kept, lost, run=clock(began))
                bar.step(len(shards[index]))
    questions, rejected = where.read_shards(Question, len(shards))
    kept, dropped = split(ask.reduce(questions, run.config.ask), Question)
    lost = [*rejected, *dropped]
    where.commit(kept, lost, stage="ask", found=len(kept) + len(lost), run=clock(started))

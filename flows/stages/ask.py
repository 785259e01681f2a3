"""Ask: questions about the named entities in the articles' images, written and checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.core.errors import TransientError
from engine.core.schema import Article, Question, Rejected
from engine.core.store import StageDir, register_writer, stage_key
from flows import console
from flows.run import Run
from flows.stages import collect
from flows.stages.base import Done, batches, clock, done, split

if TYPE_CHECKING:
    from engine.llm.plan import Estimate
    from flows.wiring import AskModels


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
    register_writer(run.home.root)
    with where.lock():
        if where.finished:
            return done("ask", where, fresh=False)
        where.sweep()
        where.agree(f"{run.config.ask.batch_articles} articles")
        asyncio.run(_ask(run, where))
    return done("ask", where, fresh=True)


async def _ask(run: Run, where: StageDir) -> None:
    from engine.questions import ask
    from engine.questions.deps import make_deps
    from flows.wiring import ask_models, ledger_of

    started = time.monotonic()
    articles = collect.place(run).read(Article)
    shards = batches(articles, run.config.ask.batch_articles)
    missing = [index for index in range(len(shards)) if not where.shard_done(index)]
    ledger = ledger_of(run)
    async with ask_models(run, ledger=ledger) as models:
        chats = [chat for chat in (models.chat, models.blind) if chat is not None]
        for chat in chats:
            chat.silence.tell = _warn
        if run.config.ask.batch:
            await _by_batches(run, articles, models)
        deps = make_deps(
            run.config.ask,
            run.config.llm,
            chat=models.chat,
            blind=models.blind,
            blobs=run.home.blobs,
            search=models.search,
            articles=articles,
        )
        with console.bar("ask", len(articles)) as bar:
            bar.step(len(articles) - sum(len(shards[index]) for index in missing))

            # shards wait here while it is not sure that their losses are the items' own
            held: list[tuple[int, list[Question | Rejected]]] = []

            def finished(index: int, found: list[Question | Rejected]) -> None:
                held.append((index, found))
                if not any(chat.doubtful for chat in chats):
                    commit()

            def commit() -> None:
                while held:
                    index, found = held.pop()
                    kept, lost = split(found, Question)
                    where.commit_shard(index, kept, lost, run=clock(started))
                    bar.step(len(shards[index]))

            todo = ((index, shards[index]) for index in missing)
            await ask.run_shards(todo, run.config.ask, deps=deps, done=finished)
            for chat in chats:
                await chat.vouch()
            commit()
    questions, rejected = where.read_shards(Question, len(shards))
    stories = {article.id: article.story for article in articles if article.story}
    kept, dropped = split(ask.reduce(questions, run.config.ask, stories=stories), Question)
    lost = [*rejected, *dropped]
    where.commit(
        kept, lost, stage="ask", found=len(kept) + len(lost), run={**clock(started), "ledger": ledger.summary()}
    )


def _warn(text: str) -> None:
    # over the bar, which it is longer than
    start = "\r" if console.is_terminal() else ""
    console.say(f"{start}  ask        {text}")


async def _by_batches(run: Run, articles: Sequence[Article], models: AskModels) -> None:
    """One visit to the window's batches. Raises `TransientError` while replies are waited for; afterwards the stage
    finds them in the cache, and asks live for what failed in every batch it was in."""
    from engine.questions.planning import batch_round

    if models.chat is None:
        console.say(
            f"  ask        the writer '{run.config.ask.writer}' asks no model: there is nothing to send by batch"
        )
        return
    progress = await batch_round(
        articles,
        run.config.ask,
        run.config.llm,
        chat=models.chat,
        blind=models.blind,
        folder=run.home.window(run.window) / "batches",
        blobs=run.home.blobs,
        search=models.search,
    )
    console.say(
        f"  ask        by batch: {progress.collected} replies came, {progress.failed} requests failed, "
        f"{progress.submitted} sent, {progress.given_up} left to be asked live"
    )
    if progress.waiting:
        raise TransientError(
            f"{progress.waiting} requests of {run.window.label} wait for their batch (up to a day): run the same "
            "command again later; what is there is kept"
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
    return plan.estimates(run.config.llm, batch=run.config.ask.batch)

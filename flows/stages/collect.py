"""Collect: links of the window from all sources, then pages and images, then duplicates."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError
from engine.core.schema import Article, FunnelStep, Link, Rejected
from engine.core.store import StageDir, register_writer, stage_key
from engine.core.store.stages import DATA, REJECTED, read_jsonl
from flows import console
from flows.run import Run
from flows.stages.base import Done, batches, clock, done, split
from flows.stages.lines import Lines, in_order
from flows.stages.sources import rows_of

if TYPE_CHECKING:
    from engine.news.find import Found
    from engine.news.losses import Publisher

SHARD_LINKS = 64


def place(run: Run) -> StageDir:
    """Where the window's articles lie; depends on the sources and the collect section only."""
    from engine.news.collect import VERSION

    config = {
        "collect": run.config.collect.keyed(),
        "sources": [source.model_dump(mode="json") for source in run.config.source],
        "window": run.window.label,
        "revision": run.revision,
    }
    return run.home.stage(run.window, "collect", stage_key("collect", VERSION, config, []))


def do(run: Run) -> Done:
    """Collect the window unless that is done."""
    where = place(run)
    if where.finished:
        return done("collect", where, fresh=False)
    if not run.config.source:
        raise ConfigError("no [[source]] in the configuration: 'nest init' writes a nest.toml with starter sources")
    register_writer(run.home.root)
    with where.lock():
        if where.finished:
            return done("collect", where, fresh=False)
        where.sweep()
        asyncio.run(_collect(run, where))
    return done("collect", where, fresh=True)


async def _collect(run: Run, where: StageDir) -> None:
    from engine.news import collect, find
    from flows.wiring import news_deps

    started = time.monotonic()
    found = StageDir(where.path / "found")
    async with news_deps(run) as deps:
        if not found.finished:
            told = await find.gather(run.window, rows_of(run.config), run.config.collect, deps=deps)
            _commit_found(found, told, started=started)
            del told
        links = Lines(Link)
        shards = batches([position for position, _ in links.add(found.path / DATA)], SHARD_LINKS)
        missing = [index for index in range(len(shards)) if not where.shard_done(index)]
        with console.bar("collect", sum(map(len, shards))) as bar:
            bar.step(sum(len(shard) for index, shard in enumerate(shards) if index not in set(missing)))
            for index in missing:
                began = time.monotonic()
                shard = [links.read(position) for position in shards[index]]
                results2 = await collect.run(shard, run.config.collect, window=run.window, deps=deps)
                kept, lost = split(results2, Article)
                where.commit_shard(index, kept, lost, run=clock(began))
                bar.step(len(shard))
    count = len(shards)
    del links, shards, missing
    _finish(run, where, found, count, started=started)


def _commit_found(found: StageDir, told: Found, *, started: float) -> None:
    # links have no id: they lie in the order of their lines
    told.lines.sort()
    found.commit_sorted(
        told.links(),
        sorted(told.lost, key=lambda item: (item.item, item.code.value, item.detail)),
        stage="find",
        found=len(told.lines) + len(told.lost),
        run=clock(started),
    )


def _finish(run: Run, where: StageDir, found: StageDir, shards: int, *, started: float) -> None:
    """The whole-window step over the shards' articles, each read when it is needed: memory holds a card of each."""
    from engine.news.duplicates import Cards, losses, plan, settle

    articles = Lines(Article)
    folders = [where.shard(index) for index in range(shards)]
    cards = Cards(article for folder in folders for _, article in articles.add(folder / DATA))
    decided = plan(cards, articles.read, run.config.collect)
    del cards
    refused = chain(
        (item for folder in (found.path, *folders) for item in read_jsonl(folder / REJECTED, Rejected)),
        losses(decided, articles.read),
    )
    where.commit_sorted(
        (
            settle(articles.read(position), label, decided)
            for position, label in zip(decided.staying, decided.labels, strict=True)
        ),
        in_order(refused, Rejected, key=lambda item: (item.item, item.code.value, item.detail), folder=where.path),
        stage="collect",
        found=found.funnel().kept,
        run=clock(started),
    )


def publishers(where: StageDir) -> list[Publisher]:
    """Per publisher what a finished collect stage kept and lost, most losses first."""
    from engine.news.losses import by_publisher

    return by_publisher(where.iterate(Article), where.rejected())


def funnel(where: StageDir) -> list[FunnelStep]:
    """Counts of a finished collect stage in three units: links of sources, pages, images."""
    found = StageDir(where.path / "found")
    articles = list(where.iterate(Article))
    sources = set(found.rejected())
    pages: Counter[str] = Counter()
    images: Counter[str] = Counter()
    for item in where.rejected():
        if item.parent:
            images[item.code.value] += 1
        elif item not in sources:
            pages[item.code.value] += 1
    kept = sum(len(article.images) for article in articles)
    return [
        found.funnel(),
        FunnelStep(stage="collect", found=len(articles) + pages.total(), kept=len(articles), rejected=dict(pages)),
        FunnelStep(stage="images", found=kept + images.total(), kept=kept, rejected=dict(images)),
    ]

"""Collect: links of the window from all sources, then pages and images, then duplicates."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError
from engine.core.schema import Article, FunnelStep, Link
from engine.core.store import StageDir, register_writer, stage_key
from flows import console
from flows.run import Run
from flows.stages.base import Done, batches, clock, done, split

if TYPE_CHECKING:
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
            results = await find.find(run.window, run.config.source, run.config.collect, deps=deps)
            links, lost = split(results, Link)
            if run.config.collect.limit is not None:
                links = links[: run.config.collect.limit]
            found.commit(links, lost, stage="find", found=len(links) + len(lost), run=clock(started))
        links = found.read(Link)
        shards = batches(links, SHARD_LINKS)
        missing = [index for index in range(len(shards)) if not where.shard_done(index)]
        with console.bar("collect", len(links)) as bar:
            bar.step(len(links) - sum(len(shards[index]) for index in missing))
            for index in missing:
                began = time.monotonic()
                results2 = await collect.run(shards[index], run.config.collect, window=run.window, deps=deps)
                kept, lost = split(results2, Article)
                where.commit_shard(index, kept, lost, run=clock(began))
                bar.step(len(shards[index]))
    articles, rejected = where.read_shards(Article, len(shards))
    reduced = collect.reduce(articles, run.config.collect)
    kept, dropped = split(reduced, Article)
    where.commit(kept, [*found.rejected(), *rejected, *dropped], stage="collect", found=len(links), run=clock(started))


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

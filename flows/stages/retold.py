"""Which articles of a window tell again what an earlier snapshot told: the texts behind both are compared.

A snapshot holds no texts; those of earlier windows lie in their collect stages as long as nobody removes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.core.schema import Article
from engine.core.store import Home, StageDir
from engine.core.windows import parse_window
from engine.snapshot.manifest import read_manifest
from engine.snapshot.overlap import read_traces

#: Of the latest so many earlier snapshots; a text is told again within weeks, and each costs reading a window.
LATEST = 8


def retold(home: Home, articles: Sequence[Article], earlier: Sequence[Path]) -> dict[str, frozenset[str]]:
    """By name of an earlier snapshot the canonical addresses of articles whose text repeats one of its articles'.

    `earlier` are folders, oldest first. A snapshot is left out if a text behind it is not there any more.
    """
    from engine.news.stories import Sketches, pairs_of, sketch_of

    ours = {article.canonical_url: article.text for article in articles}
    addresses, texts = list(ours), list(ours.values())
    owners: list[str] = []
    found: dict[str, set[str]] = {}
    for folder in earlier[-LATEST:]:
        known = _texts(home, folder)
        if known is not None:
            name = read_manifest(folder).name
            found[name] = set()
            texts += known
            owners += [name] * len(known)
    if not owners:
        return {name: frozenset() for name in found}
    same, _ = pairs_of(Sketches(sketch_of(text) for text in texts), texts.__getitem__)
    for a, b in same:
        one, other = min(a, b), max(a, b)
        if one < len(ours) <= other:
            found[owners[other - len(ours)]].add(addresses[one])
    return {name: frozenset(told) for name, told in found.items()}


def _texts(home: Home, folder: Path) -> list[str] | None:
    """The texts of the articles that a snapshot's rows are of, None if one is missing."""
    wanted = read_traces(folder).articles
    texts: dict[str, str] = {}
    window = parse_window(read_manifest(folder).window)
    for path in sorted((home.window(window) / "collect").glob("*/")):
        stage = StageDir(path)
        if stage.finished:
            for article in stage.iterate(Article):
                if article.canonical_url in wanted:
                    texts.setdefault(article.canonical_url, article.text)
    return list(texts.values()) if len(texts) == len(wanted) else None

"""A later window that tells again what an earlier snapshot told: the manifest counts it, and says if it cannot know."""

from __future__ import annotations

import json
from pathlib import Path

from support import snapshots

from engine.core.schema import Article
from engine.core.store import Home
from engine.core.windows import parse_window
from engine.snapshot.build import build
from engine.snapshot.manifest import read_manifest
from flows.stages.retold import retold

#: The window of the snapshots that the helpers make.
EARLIER = snapshots.WINDOW
LATER = parse_window("2026-W49")


def text(name: str) -> str:
    return " ".join(f"{name}{i}" for i in range(120))


def earlier_week(root: Path, *, gone: frozenset[str] = frozenset()) -> tuple[Home, Path]:
    """A home with a snapshot of three rows and the texts behind them, without those of the addresses in `gone`."""
    home = Home(root)
    folder = home.snapshot(EARLIER.name)
    snapshots.snapshot(folder, 3)
    articles, _, _ = snapshots.records(4, home.blobs)
    told = [article.model_copy(update={"text": text(article.id)}) for article in articles]
    kept = [article for article in told if article.canonical_url not in gone]
    home.stage(EARLIER, "collect", "0" * 16).commit(kept, [], stage="collect", found=4)
    return home, folder


def later_articles(home: Home) -> list[Article]:
    """Of four: one repeats a row of the earlier snapshot, one what was collected then and did not become a row."""
    articles, _, _ = snapshots.records(4, home.blobs, seed=10)
    texts = [f"{text('a00001')} Told again by the desk.", text("a00003"), text("other"), text("another")]
    return [article.model_copy(update={"text": said}) for article, said in zip(articles, texts, strict=True)]


def test_a_text_of_an_earlier_row_is_told_again_at_another_address(tmp_path: Path) -> None:
    home, folder = earlier_week(tmp_path)
    articles = later_articles(home)
    found = retold(home, articles, [folder])
    assert found == {EARLIER.name: {articles[0].canonical_url}}
    assert retold(home, articles, []) == {}
    assert retold(home, articles[2:], [folder]) == {EARLIER.name: frozenset()}


def test_without_an_earlier_text_nothing_is_claimed(tmp_path: Path) -> None:
    home, folder = earlier_week(tmp_path, gone=frozenset({"https://www.herald.example/2"}))
    assert retold(home, later_articles(home), [folder]) == {}


def test_the_manifest_and_the_card_tell_of_stories(tmp_path: Path) -> None:
    home, folder = earlier_week(tmp_path)
    samples = snapshots.samples(4, home.blobs, seed=10)
    known = retold(home, later_articles(home), [folder])
    for name, told, written, cell in (
        ("known", known, 1, "| 0 | 0 | 0 | 1 |"),
        ("unknown", {}, None, "| 0 | 0 | 0 | - |"),
    ):
        into = tmp_path / name
        into.mkdir()
        build(
            into,
            samples,
            window=LATER,
            config=snapshots.CONFIG,
            hub_repo="",
            blobs=home.blobs,
            key="k",
            earlier=[folder],
            retold=told,
        )
        (overlap,) = read_manifest(into).overlaps
        assert overlap.stories == written
        (raw,) = json.loads((into / "snapshot.json").read_text(encoding="utf-8"))["overlaps"]
        # a manifest of a time when stories were not counted keeps its bytes
        assert ("stories" in raw) == (written is not None)
        assert f"| {EARLIER.name} {cell}" in (into / "README.md").read_text(encoding="utf-8")

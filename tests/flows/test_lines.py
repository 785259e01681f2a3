"""The end of the collect stage in the memory of a few records: sorted runs on disk, and the same bytes as in memory."""

from __future__ import annotations

import hashlib
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.newsroom import story

from engine.core.config import CollectSection, load_config
from engine.core.schema import Article, Code, ImageRef, Rejected, Stage
from engine.core.store import StageDir
from engine.core.store.stages import DATA, REJECTED
from engine.news.duplicates import Cards, losses, plan, reduce
from flows.run import run_for
from flows.stages import collect, lines


def lost(item: str, detail: str = "") -> Rejected:
    return Rejected(item=item, stage=Stage.COLLECT, code=Code.NO_TEXT, detail=detail)


def article(n: int, text: str, *, photo: int = 0, url: str = "") -> Article:
    digest = hashlib.sha256(f"photo {photo}".encode()).hexdigest()
    place = url or f"https://publisher{n % 7}.example/n/{n}"
    return Article(
        id=hashlib.sha256(place.encode()).hexdigest()[:16],
        url=f"{place}?seen={n}",
        canonical_url=place,
        title=f"Story {n}",
        text=text,
        source="harbour",
        published_at=datetime(2026, 3, 2 + n % 7, n % 24, tzinfo=UTC),
        images=(
            ImageRef(
                sha256=digest,
                ext="jpg",
                url=f"https://publisher{n % 7}.example/i/{photo}.jpg",
                width=400 + photo % 3,
                height=300,
                caption="The mayor" if n % 2 else "",
                # the first two photos are one, the third is nearly it, all others differ
                phash=["00000000000000ff", "00000000000000fe", "0000000000ff00ff"][photo] if photo < 3 else digest[:16],
            ),
        ),
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("xyz")), max_size=40), st.integers(1, 50))
def test_sorting_in_runs_is_sorting_and_keeps_ties_as_they_came(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    items = [lost(item, detail) for item, detail in drawn]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "RUN_ITEMS", size)
        found = []
        for item in lines.in_order(items, Rejected, key=lambda item: item.item, folder=folder):
            # a process that is killed here leaves no file behind
            assert list(folder.iterdir()) == []
            found.append(item)
    assert found == sorted(items, key=lambda item: item.item)


def test_the_stage_ends_with_what_reducing_in_memory_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "RUN_ITEMS", 4)
    config = load_config(
        None,
        environ={},
        overrides={
            "home": str(tmp_path),
            "source": [{"name": "harbour", "type": "feed", "url": "http://harbour.example/feed.xml"}],
        },
    )
    run = run_for(config, "2026-03-02..2026-03-08")
    where = collect.place(run)
    texts = [story(f"story {n % 17}") + ("Told again. " * (n // 17)) for n in range(40)]
    made = [
        article(n, text, photo=n % 11, url="https://a.example/n/1" if n in (5, 30) else "")
        for n, text in enumerate(texts)
    ]
    refused = [lost(f"https://publisher{n % 5}.example/r/{n % 9}", f"reason {n % 3}") for n in range(30)]
    found = StageDir(where.path / "found")
    found.commit([], refused[:3], stage="find", found=70)
    for index in range(4):
        where.commit_shard(index, made[index * 10 : index * 10 + 10], refused[3 + index * 6 : 9 + index * 6])
    collect._finish(run, where, found, 4, started=time.monotonic())

    done = reduce(made, config.collect)
    kept = [item.line() for item in done if isinstance(item, Article)]
    gone = [*refused[:27], *(item for item in done if isinstance(item, Rejected))]
    gone.sort(key=lambda item: (item.item, item.code.value, item.detail))
    assert (where.path / DATA).read_text(encoding="utf-8").splitlines() == kept
    assert (where.path / REJECTED).read_text(encoding="utf-8").splitlines() == [item.line() for item in gone]
    assert len(kept) == 17
    assert {item.code for item in gone} == {Code.NO_TEXT, Code.DUPLICATE_STORY, Code.DUPLICATE_URL}
    assert sum(len(where.read(Article)[n].notes) for n in range(17)) > 0


def test_a_page_more_costs_less_than_two_thirds_of_a_kilobyte() -> None:
    config = CollectSection()

    def peak_bytes(count: int) -> int:
        def made(n: int) -> Article:
            words = hashlib.sha512(str(n).encode()).hexdigest()
            return article(n, " ".join(words[i : i + 4] for i in range(0, 120, 4)), photo=3 + n)

        tracemalloc.start()
        cards = Cards(made(n) for n in range(count))
        found = plan(cards, made, config)
        assert len(found.staying) == count
        assert list(losses(found, made)) == []
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(10)
    # whole blocks of sketches, so that a half empty one is not counted
    assert (peak_bytes(3072) - peak_bytes(1024)) / 2048 < 700

"""Recorded answers: the same hits with the provider gone, nothing asked twice, errors never kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ConfigError, TerminalError, TransientError
from engine.core.protocols import ImageHit, TextHit
from engine.web.search.record import RecordedEntities, RecordedSearch
from engine.web.search.vision import ImageEntity

UNTIL = datetime(2026, 3, 9, tzinfo=UTC)
NOISE = np.random.default_rng(1).integers(0, 256, (30, 41, 3), dtype=np.uint8)


class Counting:
    """A provider that counts what it is asked; `broken` makes it fail."""

    name = "counting"

    def __init__(self, *, latency_s: float = 0.0) -> None:
        self.asked: list[str] = []
        self.latency_s = latency_s
        self.broken = False

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        self.asked.append(query)
        await asyncio.sleep(self.latency_s)
        if self.broken:
            raise TransientError("away")
        return [TextHit(url="https://a.example/1", title=query, text="Ünï", published=UNTIL, score=0.25)][:limit]

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        self.asked.append(query)
        return [ImageHit(url="https://a.example/1.png", caption="c", image=NOISE, published=None)]


async def test_what_is_recorded_is_the_same_with_the_provider_gone(tmp_path: Path) -> None:
    inner = Counting()
    online = RecordedSearch(inner, tmp_path)
    text = await online.text("q", limit=3, until=UNTIL, blocked=["b", "a"])
    (picture,) = await online.images("q", limit=3)
    offline = RecordedSearch(None, tmp_path, name="counting", offline=True)
    assert await offline.text("q", limit=3, until=UNTIL, blocked=["a", "b", "a"]) == text
    (again,) = await offline.images("q", limit=3)
    assert np.array_equal(again.image, picture.image)
    assert (again.url, again.caption, again.published) == (picture.url, picture.caption, None)
    assert inner.asked == ["q", "q"]
    with pytest.raises(TransientError, match="was never asked 'other'"):
        await offline.text("other", limit=3)
    with pytest.raises(TransientError, match="never asked"):
        await offline.text("q", limit=3, until=UNTIL, blocked=["a"])


async def test_nothing_is_asked_twice_even_at_the_same_time(tmp_path: Path) -> None:
    inner = Counting(latency_s=0.05)
    search = RecordedSearch(inner, tmp_path)
    await asyncio.gather(*(search.text(f"q{n % 4}", limit=1) for n in range(40)))
    assert sorted(inner.asked) == ["q0", "q1", "q2", "q3"]
    await RecordedSearch(inner, tmp_path).text("q2", limit=1)
    assert len(inner.asked) == 4


async def test_one_waiter_that_gives_up_does_not_take_the_answer_from_the_others(tmp_path: Path) -> None:
    search = RecordedSearch(Counting(latency_s=0.1), tmp_path)
    first = asyncio.create_task(search.text("q", limit=1))
    second = asyncio.create_task(search.text("q", limit=1))
    await asyncio.sleep(0.02)
    first.cancel()
    assert len(await second) == 1


async def test_errors_are_not_recorded(tmp_path: Path) -> None:
    inner = Counting()
    inner.broken = True
    search = RecordedSearch(inner, tmp_path)
    with pytest.raises(TransientError):
        await search.text("q", limit=1)
    inner.broken = False
    assert len(await search.text("q", limit=1)) == 1


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.rglob(pattern)
    return path


async def test_damage_is_found(tmp_path: Path) -> None:
    search = RecordedSearch(Counting(), tmp_path)
    await search.images("q", limit=1)
    record, picture = only(tmp_path, "*.json"), only(tmp_path, "*.png")
    picture.write_bytes(picture.read_bytes()[:-1])
    with pytest.raises(TerminalError, match="damaged"):
        await RecordedSearch(None, tmp_path, name="counting").images("q", limit=1)
    record.write_text("{")
    with pytest.raises(TerminalError, match="damaged"):
        await RecordedSearch(None, tmp_path, name="counting").images("q", limit=1)


class Names:
    name = "names"

    def __init__(self) -> None:
        self.count = 0

    async def entities(self, image: np.ndarray) -> list[ImageEntity]:
        self.count += 1
        return [ImageEntity("Ada Brook", 0.5)]


async def test_entities_are_recorded_by_pixels(tmp_path: Path) -> None:
    inner = Names()
    online = RecordedEntities(inner, tmp_path)
    assert await online.entities(NOISE) == await online.entities(NOISE.copy()) == [ImageEntity("Ada Brook", 0.5)]
    assert inner.count == 1
    offline = RecordedEntities(None, tmp_path, name="names")
    assert await offline.entities(NOISE) == [ImageEntity("Ada Brook", 0.5)]
    with pytest.raises(TransientError):
        await offline.entities(NOISE[::-1])


def test_a_provider_needs_its_key() -> None:
    from engine.core.config import RoseSection
    from engine.web.search.registry import SearchSet

    for name, told in (("brave", "BRAVE_API_KEY"), ("searxng", "searxng_url"), ("google", "google_engine")):
        with pytest.raises(ConfigError, match=told):
            SearchSet(
                RoseSection(search=(name,)),
                local=None,
                secrets={"GOOGLE_API_KEY": "k"},
                cache=Path("none"),
                fetcher=object(),  # type: ignore[arg-type]
                read=lambda body, url: None,
            )
    with pytest.raises(ConfigError, match="did you mean 'brave'"):
        SearchSet(RoseSection(search=("brav",)), local=None, secrets={}, cache=Path("none"))
    with pytest.raises(ConfigError, match="GOOGLE_API_KEY is not set"):
        SearchSet(RoseSection(search=(), image_entities="google-vision"), local=None, secrets={}, cache=Path("none"))
    made = SearchSet(RoseSection(search=("brave", "wikipedia")), local=None, secrets={}, cache=Path("n"), offline=True)
    assert made.search is not None
    assert made.search.name == "brave+wikipedia"

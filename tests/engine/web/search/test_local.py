"""The local index: what is found, what never is, and that a build is reproducible."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import ConfigError
from engine.core.images import encode_jpeg
from engine.core.schema import Article, DateWitness, ImageRef
from engine.core.store import BlobStore
from engine.web.search.guard import Blocked, in_time, last_instant, near_copy, read_instant, shingles
from engine.web.search.local import LocalIndex

CASE = Path(__file__).parents[3] / "data" / "cases" / "47-evidence-cutoff"
DAY = datetime(2026, 3, 4, 12, tzinfo=UTC)


def article(name: str, text: str, *, published: datetime | None = DAY, **more: object) -> Article:
    url = str(more.pop("url", f"https://north.example/n/{name}"))
    return Article.model_validate(
        {
            "id": name,
            "url": url,
            "canonical_url": url,
            "title": f"Story {name}",
            "text": text,
            "published_at": published,
            **more,
        }
    )


def picture(blobs: BlobStore, shade: int, caption: str, *, url: str = "") -> ImageRef:
    pixels = np.full((40, 60, 3), shade, np.uint8)
    sha256 = blobs.put(encode_jpeg(pixels), "jpg")
    where = url or f"https://img.example/{shade}.jpg"
    return ImageRef(sha256=sha256, ext="jpg", url=where, width=60, height=40, caption=caption)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


async def test_finds_by_words_and_ranks_the_better_page_first(tmp_path: Path, blobs: BlobStore) -> None:
    index = LocalIndex.build(
        tmp_path / "i.sqlite",
        [
            article("a", "Mara Quist won the harbour regatta on Sunday in strong wind."),
            article("b", "The harbour council met to speak of the new bridge and its cost."),
            article("c", "Nothing here has to do with it."),
        ],
        blobs=blobs,
    )
    hits = await index.text("Which person in the image won the harbour regatta?", limit=5)
    assert [hit.title for hit in hits] == ["Story a", "Story b"]
    assert hits[0].score > hits[1].score > 0
    assert hits[0].published == DAY
    assert [hit.title for hit in await index.text("harbour", limit=1)] != []
    assert await index.text("", limit=5) == []
    assert await index.text('"; DROP TABLE docs; --', limit=5) == []


def test_same_articles_in_any_order_give_the_same_bytes(tmp_path: Path, blobs: BlobStore) -> None:
    stories = [article(f"s{n}", f"Story number {n} tells of boats and bridges.") for n in range(12)]
    LocalIndex.build(tmp_path / "one.sqlite", stories, blobs=blobs)
    LocalIndex.build(tmp_path / "two.sqlite", reversed(stories), blobs=blobs)
    assert (tmp_path / "one.sqlite").read_bytes() == (tmp_path / "two.sqlite").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".sqlite") == ["one.sqlite", "two.sqlite"]


async def test_case_47_only_documents_that_could_be_known(tmp_path: Path, blobs: BlobStore) -> None:
    asked = json.loads((CASE / "question.json").read_text())
    expected = json.loads((CASE / "expected.json").read_text())
    stories = []
    for doc in json.loads((CASE / "docs.json").read_text()):
        day_only = bool(doc["published"]) and len(doc["published"]) == 10
        witnesses = (
            (DateWitness(kind="meta", role="modified", value=datetime.fromisoformat(doc["modified"])),)
            if doc["modified"]
            else ()
        )
        published = datetime.fromisoformat(doc["published"]) if doc["published"] else None
        stories.append(
            article(
                doc["id"],
                f"The bridge of page {doc['id']} opened, said {' '.join(doc['id'] + str(n) for n in range(9))}.",
                published=published.replace(tzinfo=published.tzinfo or UTC) if published else None,
                date_precision="day" if day_only else "second",
                date_witnesses=witnesses,
                url=doc["url"],
            )
        )
    index = LocalIndex.build(tmp_path / "i.sqlite", stories, blobs=blobs)
    hits = await index.text(
        "bridge", limit=50, until=datetime.fromisoformat(asked["asked_as_of"]), blocked=[asked["source_url"]]
    )
    found = {hit.title.removeprefix("Story ") for hit in hits}
    assert {doc: doc in found for doc in expected} == expected


async def test_variants_and_near_copies_of_a_blocked_page_are_gone(tmp_path: Path, blobs: BlobStore) -> None:
    story = "Ada Brook opened the tidal gate at Stoneport on Tuesday before a crowd of four hundred people and said so."
    index = LocalIndex.build(
        tmp_path / "i.sqlite",
        [
            article("own", story, images=(picture(blobs, 10, "Ada Brook at Stoneport"),)),
            article("copy", "By our staff. " + story, images=(picture(blobs, 20, "Ada Brook, centre"),)),
            article("other", "Ada Brook, who opened the tidal gate, was born in Stoneport.",
                    images=(picture(blobs, 30, "Ada Brook in an archive picture"),)),
        ],
        blobs=blobs,
    )  # fmt: skip
    spelled = "http://www.north.example/n/own/?utm_source=x#top"
    hits = await index.text("tidal gate Stoneport", limit=9, blocked=[spelled])
    assert [hit.title for hit in hits] == ["Story other"]
    pictures = await index.images("Ada Brook", limit=9, blocked=[spelled])
    assert [hit.caption for hit in pictures] == ["Ada Brook in an archive picture"]
    assert len(await index.images("Ada Brook", limit=9)) == 3


async def test_reference_pictures_come_first_and_need_a_date(tmp_path: Path, blobs: BlobStore) -> None:
    references = tmp_path / "references"
    for name, aliases, published in (("Ada Brook", ["A. Brook"], "2001-05-04"), ("Otto Lind", [], None)):
        folder = references / name.lower().replace(" ", "-")
        folder.mkdir(parents=True)
        told = {"name": name, "aliases": aliases, "type": "person", **({"published": published} if published else {})}
        (folder / "names.json").write_text(json.dumps(told))
        for shade in (90, 120):
            (folder / f"{shade}.jpg").write_bytes(encode_jpeg(np.full((30, 30, 3), shade + len(name), np.uint8)))
    stories = [article("a", "x y", images=(picture(blobs, 10, "Ada Brook and Otto Lind in Stoneport"),))]
    index = LocalIndex.build(tmp_path / "i.sqlite", stories, blobs=blobs, references=references)
    found = await index.images("a brook", limit=9, until=DAY + timedelta(days=1))
    assert [hit.url for hit in found] == ["reference:ada-brook/120.jpg", "reference:ada-brook/90.jpg"]
    assert found[0].image.shape == (30, 30, 3)
    assert [hit.url for hit in await index.images("Otto Lind", limit=9, until=DAY + timedelta(days=1))] == [
        "https://img.example/10.jpg"
    ]
    assert len(await index.images("Otto Lind", limit=9)) == 3
    assert await index.images("Otto Brook", limit=9) != await index.images("Otto Lind", limit=9)


def test_wrong_or_missing_index_is_a_config_error(tmp_path: Path, blobs: BlobStore) -> None:
    with pytest.raises(ConfigError, match="no search index"):
        LocalIndex(tmp_path / "none.sqlite", blobs=blobs)
    (tmp_path / "bad.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match="not a search index"):
        LocalIndex(tmp_path / "bad.sqlite", blobs=blobs)
    with pytest.raises(ConfigError, match="no folder of reference pictures"):
        LocalIndex.build(tmp_path / "i.sqlite", [], blobs=blobs, references=tmp_path / "nowhere")


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(2020, 1, 2), datetime(2029, 12, 30), timezones=ZONES)  # noqa: DTZ001


@settings(max_examples=300, deadline=None)
@given(published=INSTANTS, modified=st.lists(INSTANTS, max_size=2), until=INSTANTS, day=st.booleans())
def test_nothing_from_the_cutoff_on_is_in_time(
    published: datetime, modified: list[datetime], until: datetime, day: bool
) -> None:
    if day:
        published = datetime(published.year, published.month, published.day, tzinfo=UTC)
    last = last_instant(published, precision="day" if day else "second", modified=modified)
    allowed = in_time(last, until)
    assert last is not None
    may_be = [*modified, published + timedelta(days=1, microseconds=-1) if day else published]
    assert allowed == all(instant < until for instant in may_be)
    assert not in_time(None, until)
    assert in_time(last, None)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-06T00:30:00+01:00", datetime(2026, 3, 5, 23, 30, tzinfo=UTC)),
        ("2026-03-05", datetime(2026, 3, 5, 23, 59, 59, 999999, tzinfo=UTC)),
        ("2026-03-05T10:00:00", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_reading_dates_of_providers(text: str | None, instant: datetime | None) -> None:
    assert read_instant(text) == instant


def test_naive_dates_are_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        in_time(DAY, datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="zone"):
        last_instant(datetime(2026, 1, 1))  # noqa: DTZ001


def test_blocked_sites_cover_everything_below() -> None:
    guard = Blocked(["https://a.example/x"], sites=["huggingface.co/datasets", "paper.example"])
    assert "https://huggingface.co/datasets/FudanCVL/NEST?row=1" in guard
    assert "https://huggingface.co/models" not in guard
    assert "https://www.paper.example/" in guard
    assert "https://en.paper.example/anything" in guard
    assert "https://notpaper.example/" not in guard
    assert "http://m.a.example/x/?utm_medium=rss" in guard
    assert "" not in guard


def test_near_copies_are_told_from_reports_of_one_event() -> None:
    words = [f"w{n}" for n in range(60)]
    own = shingles(" ".join(words))
    assert near_copy(own, shingles("Agency. " + " ".join(words[:40])))
    assert not near_copy(own, shingles(" ".join(words[:8]) + " " + " ".join(f"v{n}" for n in range(50))))
    assert not near_copy(own, frozenset())

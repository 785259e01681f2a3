"""A week in two halves and in one piece: what differs, and that nothing else does.

Each window is decided from what lies in it alone. So the later half keeps articles that repeat the earlier half, and
what an article says of others (its story's label, the largest file of its photo, near matches) is said of its window.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.config import CollectSection
from engine.core.schema import Article, ImageRef
from engine.news.duplicates import NEAR_MATCH, reduce

CONFIG = CollectSection()
#: The first two are one photo, the second is the larger file of it.
PHASHES = ["0f0f0f0f0f0f0f0f", "0f0f0f0f0f0f0f0e", "f0f0ff00ff00f0ff"]
FIRST_LATE_DAY = 5


def article(n: int, text: str, *, day: int, photo: int) -> Article:
    url = f"https://s{n}.example/n/{n}"
    image = ImageRef(
        sha256=f"{photo}" * 64,
        ext="jpg",
        url=f"https://s{n}.example/{photo}.jpg",
        width=300 + photo,
        height=300,
        phash=PHASHES[photo],
        caption=f"The mayor, picture {n}",
    )
    return Article(
        id=f"s{n:02d}",
        url=url,
        canonical_url=url,
        title=f"Story {n}",
        text=text,
        published_at=datetime(2026, 3, day, tzinfo=UTC),
        images=(image,),
    )


def words(name: str, count: int = 80) -> str:
    """Words that no other name has."""
    return " ".join(f"{name}x{i}" for i in range(count))


def reduced(items: list[Article]) -> dict[str, Article]:
    return {item.id: item for item in reduce(items, CONFIG) if isinstance(item, Article)}


def halves(items: list[Article]) -> tuple[dict[str, Article], dict[str, Article]]:
    early = [item for item in items if item.published_at and item.published_at.day < FIRST_LATE_DAY]
    return reduced(early), reduced([item for item in items if item not in early])


def own(item: Article) -> str:
    """An article without what is said of others in its window."""
    images = tuple(
        image.model_copy(update={"sha256": "0" * 64, "ext": "", "width": 1, "height": 1, "phash": ""})
        for image in item.images
    )
    notes = tuple(note for note in item.notes if not note.startswith(NEAR_MATCH))
    return item.model_copy(update={"story": "", "images": images, "notes": notes}).line()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(2, 8), st.integers(0, 2)), min_size=1, max_size=9)
)
def test_the_halves_without_what_repeats_the_earlier_one_are_the_week(drawn: list[tuple[int, bool, int, int]]) -> None:
    # a story is told by copies of one report and by others that share half of it
    told = {f"s{n:02d}": (which, copy) for n, (which, copy, _, _) in enumerate(drawn)}
    items = [
        article(
            n,
            words(f"story{which}", 95) + " " + words(f"report{which}" if copy else f"desk{n}", 65),
            day=day,
            photo=photo,
        )
        for n, (which, copy, day, photo) in enumerate(drawn)
    ]
    whole = reduced(items)
    early, late = halves(items)
    early_reports = {which for which, copy in (told[name] for name in early) if copy}
    repeating = {name for name in late if told[name][1] and told[name][0] in early_reports}
    # the articles
    assert whole.keys() == (early.keys() | late.keys()) - repeating
    # their lines, but for what is said of others
    assert all(own(item) == own({**early, **late}[name]) for name, item in whole.items())
    # and what is said of others is right in each window
    photos = {item.id: drawn[n][3] for n, item in enumerate(items)}
    for window in (whole, early, late):
        shown = {photos[name] for name in window}
        for name, item in window.items():
            assert item.story == min(other for other in window if told[other][0] == told[name][0])
            largest = 1 if photos[name] < 2 and 1 in shown else photos[name]
            assert item.images[0].sha256 == f"{largest}" * 64
            assert item.images[0].url == f"https://s{int(name[1:])}.example/{photos[name]}.jpg"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(2, 8)), min_size=1, max_size=8, unique=True))
def test_in_a_chain_of_rewritten_texts_only_what_hangs_on_the_earlier_half_differs(
    drawn: list[tuple[int, int]],
) -> None:
    # texts repeat each other if they begin at most one step apart; from two steps on they only share a story
    said = words("word", 500).split()
    items = [
        article(n, " ".join(said[40 * start : 40 * start + 150]), day=day, photo=2)
        for n, (start, day) in enumerate(drawn)
    ]
    whole = reduced(items)
    early, late = halves(items)
    starts = {item.id: drawn[n][0] for n, item in enumerate(items)}
    days = {item.id: drawn[n][1] for n, item in enumerate(items)}
    assert {name for name in whole if days[name] < FIRST_LATE_DAY} == early.keys()
    hanging = {starts[name] for name in starts if days[name] < FIRST_LATE_DAY}
    while more := {starts[name] for name in starts if {starts[name] - 1, starts[name] + 1} & hanging} - hanging:
        hanging |= more
    differing = {name for name in whole if days[name] >= FIRST_LATE_DAY} ^ late.keys()
    assert all(starts[name] in hanging for name in differing)

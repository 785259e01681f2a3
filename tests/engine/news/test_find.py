"""One link per article: what several sources say of it is put together, the rest is counted."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.core.schema import Code, DateWitness, ImageClaim, Link
from engine.news.find import merge_links


def witness(kind: str, day: int) -> DateWitness:
    return DateWitness(kind=kind, value=datetime(2026, 3, day, tzinfo=UTC))  # type: ignore[arg-type]


def link(url: str, source: str, source_type: str, **more: object) -> Link:
    return Link(url=url, source=source, source_type=source_type, **more)  # type: ignore[arg-type]


def test_a_link_met_once_stays_as_it_is() -> None:
    lone = link("https://x.example/1", "x", "feed", witnesses=(witness("feed", 4),))
    kept, dropped = merge_links([lone])
    assert (kept, dropped) == ([lone], [])
    # twice the same witness is one, whether or not another source has the link
    told_twice = lone.model_copy(update={"witnesses": (witness("feed", 4), witness("feed", 4))})
    assert merge_links([told_twice])[0] == [lone]


def test_what_several_sources_say_of_an_article_is_put_together() -> None:
    feed = link(
        "https://x.example/1", "x", "feed", witnesses=(witness("feed", 4),), first_seen=datetime(2026, 3, 5, tzinfo=UTC)
    )
    harvested = feed.model_copy(update={"witnesses": (), "first_seen": datetime(2026, 3, 4, 9, tzinfo=UTC)})
    listed = link(
        "http://www.x.example/1?utm_source=g",
        "g",
        "gdelt",
        witnesses=(witness("api", 4),),
        images=(ImageClaim(url="https://x.example/a.jpg"),),
        publisher="X Post",
        section="business",
        term="harbour",
    )
    other = link("https://x.example/2", "x", "feed")
    for order in ([feed, harvested, listed, other], [other, listed, harvested, feed]):
        kept, dropped = merge_links(order)
        one = next(item for item in kept if item.url == feed.url)
        assert len(kept) == 2
        assert {w.kind for w in one.witnesses} == {"feed", "api"}
        assert one.first_seen == harvested.first_seen
        assert (one.images, one.publisher, one.section, one.term) == (listed.images, "X Post", "business", "harbour")
        # the same link of the same source met again is no loss
        assert [(item.item, item.code, item.source) for item in dropped] == [(listed.url, Code.DUPLICATE_URL, "g")]

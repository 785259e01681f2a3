"""Which links a pilot takes."""

from collections import Counter
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from engine.core.schema import Link
from engine.news.find import sample


def _links(counts: list[int]) -> list[Link]:
    return [
        Link(url=f"https://p{host}.example/2026/11/{16 + n % 7}/{n}", source=f"p{host}", source_type="feed")
        for host, count in enumerate(counts)
        for n in range(count)
    ]


@given(st.lists(st.integers(0, 30), max_size=5), st.integers(1, 60))
def test_publishers_take_turns_and_nothing_is_lost(counts: list[int], limit: int) -> None:
    links = _links(counts)
    chosen, rest = sample(links, limit)
    assert len(chosen) == min(limit, len(links))
    assert sorted([*chosen, *rest], key=links.index) == links
    assert [link for link in links if link in chosen] == chosen
    taken = Counter(link.source for link in chosen)
    # nobody has two more than one who still has some
    for host, count in enumerate(counts):
        if taken[f"p{host}"] < count:
            assert max(taken.values()) <= taken[f"p{host}"] + 1


@given(st.permutations(_links([6, 9])))
def test_the_order_of_the_sources_is_no_matter(links: list[Link]) -> None:
    assert {link.url for link in sample(links, 5)[0]} == {link.url for link in sample(_links([6, 9]), 5)[0]}


def test_a_publishers_links_are_not_all_of_its_first_days() -> None:
    chosen, _ = sample(_links([70]), 20)
    assert len({urlsplit(link.url).path.split("/")[3] for link in chosen}) >= 5

"""Names, addresses and domains found in text and bytes, however files write them."""

import pytest
from support.takedowns import NAME

from engine.snapshot.needles import Needles


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("said Tomás Okafor.", True),
        ("said TOMAS OKAFOR.", True),
        ('{"a":"Tom\\u00e1s Okafor"}', True),
        ("Tom&#225;s&nbsp;Okafor", True),
        ("Tomás Okaforov", False),
        ("https://www.a.example/p/1.jpg", True),
        ("http:\\/\\/a.example\\/p\\/1.jpg", True),
        ("https://a.example/p/1.jpg?w=100", True),
        ("https://a.example/p/1.jpgx", False),
        ("https://b.a.example/p/1.jpg", False),
        ("https://img.news.example/x", True),
        ("https://fakenews.example/x", False),
        ("news.example.org", False),
    ],
)
def test_needles_in_text(text: str, found: bool) -> None:
    needles = Needles(
        names=frozenset({NAME}),
        urls=frozenset({"https://a.example/p/1.jpg"}),
        domains=frozenset({"news.example"}),
    )
    assert needles.in_text(text) is found
    assert needles.in_bytes(text.encode()) is found

"""One article, many spellings of its address (case 15), and what is requested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.schema import Code
from engine.web.errors import FetchError
from engine.web.urls import host_of, join, request_url, url_key

CASE = Path(__file__).parents[2] / "data" / "cases" / "15-url-variants"


def test_twenty_two_urls_are_nine_articles() -> None:
    groups = json.loads((CASE / "expected.json").read_text(encoding="utf-8"))["groups"]
    keys = [{url_key(url) for url in group} for group in groups]
    assert [len(found) for found in keys] == [1] * 9
    assert len({next(iter(found)) for found in keys}) == 9
    listed = [line for line in (CASE / "urls.txt").read_text(encoding="utf-8").split("\n") if line]
    assert sorted(listed) == sorted(url for group in groups for url in group)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://x.example/a?ref=rss", "https://x.example/a", True),
        ("https://x.example/a/index.html", "https://x.example/a/", True),
        ("https://x.example/a.amp.html", "https://x.example/a.html", True),
        ("https://x.example/a?p=1", "https://x.example/a?p=2", False),
        ("https://x.example:8443/a", "https://x.example/a", False),
        ("https://m.example/a", "https://example/a", False),
        ("https://a.example/x", "https://b.example/x", False),
        ("https://x.example/a?id=1&id=2", "https://x.example/a?id=2&id=1", True),
    ],
)
def test_what_names_an_article_and_what_does_not(one: str, other: str, same: bool) -> None:
    assert (url_key(one) == url_key(other)) is same


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_has_a_key_and_a_key_is_stable(text: str) -> None:
    assert url_key(text) == url_key(text)
    assert isinstance(host_of(text), str)


@settings(deadline=None)
@example(segments=["%0X"], query={})  # no escape, though it looks like one
@given(
    st.lists(st.text("abcXYZ019-_.~åé%/", min_size=1, max_size=8), max_size=4),
    st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.text("abc019 å", max_size=6), max_size=3),
)
def test_a_key_survives_tracking_scheme_and_www(segments: list[str], query: dict[str, str]) -> None:
    from urllib.parse import urlencode

    base = "northvale.example/" + "/".join(segments)
    one = f"https://{base}?{urlencode(query)}"
    two = f"http://www.{base}?{urlencode({**dict(reversed(query.items())), 'utm_source': 'x', 'fbclid': 'y'})}#top"
    assert url_key(one) == url_key(two)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("HTTPS://Northvale.example:8443/a b#c", "https://northvale.example:8443/a%20b"),
        ("https://blåhavn.example/n/å?q=é", "https://xn--blhavn-jua.example/n/%C3%A5?q=%C3%A9"),
        ("https://x.example/%C3%A5?a=1&b=2", "https://x.example/%C3%A5?a=1&b=2"),
        (" https://x.example/a\n", "https://x.example/a"),
        ("http://x.example", "http://x.example/"),
    ],
)
def test_the_form_that_is_sent(url: str, sent: str) -> None:
    assert request_url(url) == sent
    assert request_url(sent) == sent


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/a/b",
        "ftp://x.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http://a:b@x.example/",
        "http://x.example:99999/",
        "https://" + "a" * 5000,
        "http://[bad",
    ],
)
def test_what_is_not_fetched(url: str) -> None:
    with pytest.raises(FetchError) as caught:
        request_url(url)
    assert caught.value.code is Code.FETCH_BAD_URL


def test_links_of_a_page_become_absolute_or_nothing() -> None:
    base = "https://x.example/a/b"
    assert join(base, "//y.example/c.jpg") == "https://y.example/c.jpg"
    assert join(base, "../i/j.jpg") == "https://x.example/i/j.jpg"
    assert join(base, "data:image/gif;base64,AAAA") == ""
    assert join(base, "mailto:a@b.example") == ""
    assert join(base, "http://[bad") == ""

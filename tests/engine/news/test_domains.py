"""The domain of a story: section first, then the address, then words; "unknown" is an answer."""

from __future__ import annotations

import pytest

from engine.news.domains import domain_of


@pytest.mark.parametrize(
    ("section", "url", "text", "domain"),
    [
        ("Business", "https://x.example/sport/a", "", "Economics"),
        ("News / Football", "https://x.example/a", "", "Sports"),
        ("World and Politics", "https://x.example/a", "", "Politics"),
        ("", "https://x.example/technology/2026/chip", "", "Technology"),
        ("", "https://x.example/culture/books/novel", "", "Entertainment"),
        ("", "https://x.example/news/health/a", "", "Society"),
        ("Opinion", "https://x.example/a", "", "unknown"),
        ("", "https://x.example/sport", "", "unknown"),
        ("", "https://x.example/a", "The coach praised the striker; the team won the league title.", "Sports"),
        ("", "https://x.example/a", "Parliament passed the bill; the minister and the opposition voted.", "Politics"),
        ("", "https://x.example/a", "A short note of nothing in particular.", "unknown"),
    ],
)  # fmt: skip
def test_domains(section: str, url: str, text: str, domain: str) -> None:
    assert domain_of(section=section, url=url, title="", text=text) == domain


def test_a_story_between_two_domains_is_unknown() -> None:
    text = "The minister and the parliament voted on the bill; the coach and the team won the match and the league."
    assert domain_of(section="", url="https://x.example/a", title="", text=text) == "unknown"

"""The summary paragraph above the story: whose it is, where it goes, and what is none."""

from __future__ import annotations

import pytest
from support.newsroom import story

from engine.core.schema import Code
from engine.news.extract import extract_page

URL = "https://northvale.example/n/bridge"
TITLE = "Tidal bridge opens"
SUMMARY = (
    "After nine years of works and two court cases the tidal bridge of Northvale is open, and the ferry that linked "
    "both shores since 1911 sails for the last time in June."
)
BODY = f'<div class="article-body">{story("bridge")}{story("bridge two")}</div>'


def text_of(head: str, *, meta: str = "", body: str = BODY) -> str:
    page = (
        f'<html lang="en"><head><title>{TITLE}</title>{meta}</head><body><main><header><h1>{TITLE}</h1>{head}</header>'
        f"{body}</main></body></html>"
    )
    found = extract_page(page.encode(), URL)
    assert found.title == TITLE
    assert found.text.count(TITLE) == 0
    return found.text


@pytest.mark.parametrize(
    ("head", "meta"),
    [
        (f'<p class="standfirst">{SUMMARY}</p>', ""),
        (f'<div class="news-teaser"><div class="teaser-text"><p>{SUMMARY}</p></div></div>', ""),
        (f'<h2 class="article__lead-text">{SUMMARY}</h2>', ""),
        # bylines and buttons in the same element stay out
        (f'<div class="intro"><p>{SUMMARY}</p><span>by A. Reed</span> <span>4 March 2026</span> Share</div>', ""),
        (f'<h2 class="x1"><span>{SUMMARY}</span></h2>', f'<meta name="description" content="{SUMMARY}">'),
        # descriptions are often cut
        (f'<div class="x1">{SUMMARY}</div>', f'<meta property="og:description" content="{SUMMARY[:100]}...">'),
        (
            f'<div class="x1">{SUMMARY}</div>',
            f'<script type="application/ld+json">{{"@type":"NewsArticle","description":"{SUMMARY}"}}</script>',
        ),
    ],
)
def test_the_summary_above_the_story_comes_first_and_once(head: str, meta: str) -> None:
    lines = text_of(head, meta=meta).splitlines()
    assert lines[0] == SUMMARY
    assert lines.count(SUMMARY) == 1
    assert lines[1].startswith("The tidal bridge at Bridge")
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("head", "meta"),
    [
        ("", f'<meta name="description" content="{SUMMARY}">'),
        ('<p class="subtitle">Nine years after the first pile was driven</p>', ""),
        (f'<p class="x1">{SUMMARY}</p>', '<meta name="description" content="The news of Northvale, all of it.">'),
        (f'<aside><p class="lead">{SUMMARY}</p></aside>', ""),
        (f'<figure><img src="/a.jpg"><figcaption class="lead">{SUMMARY}</figcaption></figure>', ""),
        (f'<ul><li class="teaser-text">{SUMMARY}</li></ul>', ""),
        (f'<p class="teaser-text"><a href="/n/other">{SUMMARY}</a></p>', ""),
        (f'<p class="lead">{SUMMARY} Photo: A. Reed</p>', ""),
        (f'<div class="intro"><script>var said = "{SUMMARY}";</script></div>', ""),
    ],
)
def test_what_is_no_summary_of_the_story_is_not_put_into_it(head: str, meta: str) -> None:
    assert text_of(head, meta=meta).splitlines()[0].startswith("The tidal bridge at Bridge")


def test_a_summary_that_the_text_has_already_is_not_there_twice() -> None:
    body = f'<div class="article-body"><p class="lead">{SUMMARY}</p>{story("bridge")}{story("bridge two")}</div>'
    text = text_of("", meta=f'<meta name="description" content="{SUMMARY}">', body=body)
    assert text.count(SUMMARY) == 1


def test_what_stands_below_the_story_is_no_summary_of_it() -> None:
    body = f'{BODY}<div class="teaser-text"><p>{SUMMARY}</p></div>'
    assert SUMMARY not in text_of("", body=body)


def test_a_summary_makes_no_story_of_a_page_behind_a_wall() -> None:
    wall = f'<div class="article-body">{story("bridge", paragraphs=2)}<p>Subscribe to continue reading.</p></div>'
    head = f'<h1>{TITLE}</h1><p class="lead">{SUMMARY}</p>'
    page = f"<html><head><title>{TITLE}</title></head><body><main>{head}{wall}</main>"
    found = extract_page(page.encode(), URL)
    assert found.problem is not None
    assert found.problem[0] is Code.PAYWALL

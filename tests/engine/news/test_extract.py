# ruff: noqa: E501
"""Reading a page: encodings, dates, pictures (cases 11, 12, 13), titles, kinds of pages; and laws for any bytes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.newsroom import Item, page, story

from engine.core.schema import Code, DateWitness
from engine.news.extract import Page, article_id, extract_page, read_article

CASES = Path(__file__).parents[2] / "data" / "cases"
NOW = datetime(2026, 3, 30, tzinfo=UTC)
URL = "https://northvale.example/n/bridge"


def case(name: str) -> bytes:
    return next(CASES.glob(name)).read_bytes()


def read(body: str | bytes, url: str = URL, **more: object) -> Page:
    return extract_page(body.encode() if isinstance(body, str) else body, url, latest=NOW, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "header", "title", "text"),
    [
        ("cp1252_declared_latin1.html", "text/html", "Windräder im Süden: „Die Kurve ist eng“ – so der Förster", "Förster Jörg Säuberlich"),
        ("gb2312_declared_gbk_bytes.html", "text/html", "新桥通车", "市长与工程师一同剪彩"),
        ("utf8_declared_latin1.html", "text/html; charset=utf-8", "Åse opens bridge", "Mayor Åse Brændvik"),
    ],
)  # fmt: skip
def test_encodings_are_read_as_browsers_do(file: str, header: str, title: str, text: str) -> None:
    found = read(case(f"11-*/{file}"), headers={"content-type": header})
    assert found.title == title
    assert text in found.text
    assert "\ufffd" not in found.title + found.text


@pytest.mark.parametrize(
    ("file", "right"),
    [
        ("mod_first.html", "2026-02-27T06:15:00Z"),
        ("graph.html", "2026-03-05T04:30:00Z"),
        ("url_id.html", "2026-03-25T14:07:00Z"),
        ("related.html", "2026-03-03T07:00:00Z"),
        ("future_event.html", "2026-03-05 day"),
        ("copyright_only.html", None),
        ("dmy.html", "2026-03-05 day"),
        ("bad_jsonld.html", "2026-03-06T05:00:00Z"),
        ("scheduled.html", "2026-03-07T16:00:34Z"),
    ],
)
def test_published_dates_of_pages(file: str, right: str | None) -> None:
    url = "https://northvale.example/journal/2026/03/92713" if file == "url_id.html" else URL
    decision = read(case(f"12-*/{file}"), url).decision
    if decision.published_at is None:
        assert right is None
        assert decision.problem is Code.NO_DATE
    elif decision.precision == "day":
        assert right == f"{decision.published_at:%Y-%m-%d} day"
    else:
        assert right == f"{decision.published_at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_day_order_taken_from_the_language_is_flagged() -> None:
    found = read(case("12-*/dmy.html"))
    assert any("language" in w.note for w in found.witnesses)


def test_pictures_of_a_page_each_once_and_largest() -> None:
    found = read(case("13-*/page.html"))
    expected = json.loads(case("13-*/expected.json"))
    urls = expected["images"] if isinstance(expected, dict) and "images" in expected else expected
    wanted = [item if isinstance(item, str) else item["url"] for item in urls] if isinstance(urls, list) else None
    assert [claim.url for claim in found.images] == (
        wanted
        or [
            "https://img.northvale.example/bridge.jpg?w=1600",
            "https://northvale.example/i/ribbon-1600.jpg",
            "https://img.northvale.example/ferry.jpg",
        ]
    )
    assert found.images[0].role == "lead"
    assert found.images[0].caption == "Mayor Ilse Brandvik on the bridge. Photo: A. Reed"
    assert found.images[0].credit == "A. Reed"
    assert [claim.role for claim in found.images[1:]] == ["body", "body"]


def html(head: str = "", body: str = "", *, lang: str = "en") -> str:
    return f'<html lang="{lang}"><head>{head}</head><body><article><h1>Bridge opens</h1>{body or story("bridge")}</article></body></html>'


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Bridge opens - Harbour Post</title>", "Bridge opens"),
        ('<title>x</title><meta property="og:title" content="Bridge opens at last">', "Bridge opens at last"),
        ('<meta property="og:site_name" content="Harbour Post"><title>Why it opened | Harbour Post</title>', "Why it opened"),
        ('<meta property="og:site_name" content="Harbour Post"><title>Open - or not - to all</title>', "Open - or not - to all"),
        ("", "Bridge opens"),
    ],
)  # fmt: skip
def test_titles_lose_the_publishers_name_only(head: str, title: str) -> None:
    assert read(html(head)).title == title


def test_language_authors_section_and_canonical_address() -> None:
    data = (
        '{"@type":"NewsArticle","headline":"Bridge opens","articleSection":"Business",'
        '"author":[{"@type":"Person","name":"A. Reed"},{"name":"B. Okafor"}],"publisher":{"name":"Harbour Post"}}'
    )
    found = read(
        html(
            f'<script type="application/ld+json">{data}</script><link rel="canonical" href="/n/bridge-opens?utm_source=x">',
            lang="en-gb",
        )
    )
    assert found.language == "en-GB"
    assert found.authors == ("A. Reed", "B. Okafor")
    assert found.section == "Business"
    assert found.publisher == "Harbour Post"
    assert article_id(found.canonical_url) == article_id("http://www.northvale.example/n/bridge-opens")


@pytest.mark.parametrize("href", ["https://northvale.example/", "https://other.example/n/1", "javascript:void(0)", ""])
def test_a_canonical_link_that_is_none_is_not_believed(href: str) -> None:
    assert read(html(f'<link rel="canonical" href="{href}">')).canonical_url == URL


def test_a_story_cut_into_containers_is_read_whole() -> None:
    first, second = story("bridge"), story("ferry")
    chunk = '<div class="body__container article__body">{}</div><div class="ad">Buy now</div>'
    text = read(html(body=f"<div>{chunk.format(first)}{chunk.format(second)}</div>")).text
    assert "A choir from Bridge" in text
    assert "A choir from Ferry" in text
    assert "Buy now" not in text


def test_a_lead_picture_keeps_its_caption_where_the_frame_or_a_script_holds_it() -> None:
    meta = '<meta property="og:image" content="https://img.example/lead.jpg">'
    framed = f'<html><head>{meta}</head><body><div class="page-ad-margins"><h1>Bridge opens</h1><figure><img src="https://img.example/lead.jpg?w=600"><figcaption>The mayor</figcaption></figure><article>{story("bridge")}</article></div></body></html>'
    scripted = html(
        meta,
        f'<figure><div data-lazy="1"></div><figcaption>The mayor. Photo: A. Reed</figcaption></figure>{story("bridge")}',
    )
    for body, caption in ((framed, "The mayor"), (scripted, "The mayor. Photo: A. Reed")):
        (claim,) = read(body).images
        assert (claim.role, claim.caption) == ("lead", caption)
    two = html(
        meta,
        f"<figure><figcaption>One</figcaption></figure><figure><figcaption>Two</figcaption></figure>{story('bridge')}",
    )
    assert read(two).images[0].caption == ""


@pytest.mark.parametrize(
    ("url", "head", "body", "code"),
    [
        ("https://x.example/", "", "", Code.SECTION_FRONT),
        ("https://x.example/tag/harbour/", "", "", Code.SECTION_FRONT),
        ("https://x.example/n/live-updates/1", "", "", Code.LIVE_BLOG),
        (URL, '<script type="application/ld+json">{"@type":"LiveBlogPosting"}</script>', "", Code.LIVE_BLOG),
        (URL, "", "<p>We value your privacy. We and our partners use cookies to make this site better.</p>" * 2, Code.CONSENT_PAGE),
        (URL, "", "<p>The bridge opened.</p><p>Subscribe to continue reading.</p>", Code.PAYWALL),
        (URL, '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}</script>', "<p>The bridge opened on Wednesday.</p>", Code.PAYWALL),
        (URL, "", "", None),
        ("https://x.example/tag-team-wins/", "", "", None),
    ],
)  # fmt: skip
def test_what_is_no_article(url: str, head: str, body: str, code: Code | None) -> None:
    problem = read(html(head, body), url).problem
    assert (problem[0] if problem else None) is code


def test_a_long_free_story_about_cookies_is_an_article() -> None:
    body = (
        story("bridge")
        + story("ferry")
        + story("lock")
        + story("pier")
        + "<p>The ministry said: we use cookies. Subscribe to continue reading, it joked.</p>"
    )
    assert read(html(body=body)).problem is None


def test_the_opt_out_in_a_page_is_told() -> None:
    assert read(html('<meta name="robots" content="noai">')).opt_out == "meta robots: noai"


def test_a_lone_page_as_an_article() -> None:
    article, images = read_article(
        page(Item("/n/bridge", "2026-03-04T09:00:00Z", images=[("/i/a.jpg", "The mayor")])), URL
    )
    assert article.published_at == datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert article.date_certain
    assert article.images == ()
    assert [claim.caption for claim in images] == ["The mayor"]
    assert len(article.id) == 16


def test_other_witnesses_are_weighed_and_kept() -> None:
    day = DateWitness(kind="first_seen", value=datetime(2026, 2, 1, tzinfo=UTC), raw="2026-02-01")
    found = read(page(Item("/n/bridge", "2026-03-04T09:00:00Z")), others=[day])
    assert found.decision.problem is Code.DATE_CONFLICT
    assert day in found.witnesses


def test_reading_is_pure() -> None:
    body = case("13-*/page.html")
    assert read(body) == read(body)


def test_tags_and_attributes_that_no_tree_can_be_built_with_are_read() -> None:
    odd = (
        '<o:p class="byline" "=1 x:y=2>By A. Reed</o:p><span class="author" 7up="1">A &#1; Reed</span>'
        '<meta name="author" content="A &#11; Reed" ">'
    )
    found = read(html(odd.replace("<o:p", "<p"), f"{odd}{story('bridge')}"))
    assert found.text
    assert all("\x01" not in name for name in found.authors)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["<o:p ", "<p ", "<meta ", "<time ", "<img ", "<figure ", "<h1 ", "<a "]), max_size=6),
    st.lists(
        st.sampled_from(
            [
                'class="byline"',
                '"',
                "x:y=1",
                "7=2",
                'itemprop="datePublished"',
                'datetime="&#1;"',
                'name="author"',
                "content='&#0;&#11;'",
                "src='//[x'",
                "href='http://[::1'",
                ">",
            ]
        ),
        max_size=12,
    ),
)
def test_odd_markup_is_read_without_an_exception(tags: list[str], attributes: list[str]) -> None:
    body = "".join(tag + " ".join(attributes) + ">text " for tag in tags)
    assert isinstance(read(html(body, body + story("bridge"))).text, str)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300) | st.text(alphabet='<>/="abc 2026-03-04imgsrc{}[]:,\n', max_size=400).map(str.encode))
def test_any_bytes_are_read_without_an_exception(body: bytes) -> None:
    found = read(body)
    assert isinstance(found.text, str)
    assert "\x00" not in found.title + found.text


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 3000), st.integers(1, 400))
def test_a_cut_or_holed_page_is_read_without_an_exception(start: int, length: int) -> None:
    body = case("13-*/page.html")
    found = read(body[:start] + body[start + length :])
    assert all(claim.url.startswith(("http://", "https://")) for claim in found.images)

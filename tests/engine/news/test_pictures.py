# ruff: noqa: E501
"""Lead pictures and captions: the ways in which pages mark them, each in a page of our own making."""

from __future__ import annotations

import pytest

from engine.core.schema import ImageClaim
from engine.news.extract import extract_page
from engine.news.page.pictures import fold_key, is_never_a_photo, original_of

URL = "https://northvale.example/n/bridge-opens"
TEXT = "".join(
    f"<p>The new bridge over the Tarn carried its first {n} cars on Monday, and the mayor walked across it.</p>"
    for n in ("hundred", "thousand", "ten", "twelve")
)


def images(body: str, head: str = "") -> tuple[ImageClaim, ...]:
    page = f'<html lang="en"><head>{head}</head><body>{body}</body></html>'
    return extract_page(page.encode(), URL).images


def lead(body: str, head: str = "") -> ImageClaim | None:
    return next((claim for claim in images(body, head) if claim.role == "lead"), None)


def og(url: str) -> str:
    return f'<meta property="og:image" content="{url}">'


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # a resizing service: the address of the original lies in the path or in a parameter
        (
            "https://cdn.post.example/thumbor/AbC=/0x0:2268x1517/1200x800/filters:focal(5x5)/media.post.com/up/19359370/tarn.jpg",
            "https://cdn.post.example/thumbor/XyZ=/1400x1400/filters:format(jpeg)/media.post.com/up/19359370/tarn.jpg",
            True,
        ),
        (
            "https://img.post.example/dims4/d494a30/strip/resize/1200x630!/?url=https%3A%2F%2Fraw.post.com%2Fa5%2F8789433e6%2Ftarn-001",
            "https://img.post.example/dims4/0b48476/strip/resize/840x548!/?url=https%3A%2F%2Fraw.post.com%2Fa5%2F8789433e6%2Ftarn-001",
            True,
        ),
        ("https://post.example/Photo.aspx?image=/up/20200622.jpg&width=300", "https://www.post.example/up/20200622.jpg", True),
        ("https://a.example/client/q_lossy,w_750/https://a.example/up/bridge-tarn.jpg", "https://a.example/up/bridge-tarn.jpg", True),
        # a file's name says which picture it is, its parameters only how it is shown
        ("https://a.example/bridge-tarn.jpg?overlay-width=100p&s=02f5", "https://a.example/bridge-tarn.jpg?w=1200", True),
        ("https://a.example/image.jpg?id=1", "https://a.example/image.jpg?id=2", False),
        ("https://a.example/652*367/bridge-tarn.jpg", "https://a.example/1200*675/bridge-tarn.jpg", True),
        ("https://a.example/up/bridge-1.jpg", "https://a.example/up/bridge-2.jpg", False),
    ],
)  # fmt: skip
def test_one_photo_in_several_sizes(one: str, other: str, same: bool) -> None:
    assert (fold_key(one) == fold_key(other)) is same


def test_the_original_of_an_address_without_one_is_itself() -> None:
    for url in ("https://a.example/b.jpg", "https://a.example/b?url=/about", "https://a.example/2026.03/b.jpg"):
        assert original_of(url) == url


@pytest.mark.parametrize(
    ("url", "never"),
    [
        ("https://a.example/", True),
        ("https://a.example/img/site-logo.png", True),
        ("https://a.example/logo-black-400.png", True),
        ("https://a.example/2017/np-512x512.png", True),
        ("https://a.example/sharing_snippet/1.png", True),
        ("https://a.example/media/banner-3378.png", True),
        ("https://a.example/flags/ir.png", True),
        # a photo that shows a sign is a photo
        ("https://a.example/up/alibaba-logo-getty-1024-683.jpg", False),
        ("https://a.example/up/mayor-presents-new-logo-of-tarn-valley-league-team.jpg", False),
    ],
)
def test_what_an_address_says_of_its_picture(url: str, never: bool) -> None:
    assert is_never_a_photo(url) is never


def test_a_caption_beside_the_inner_figure() -> None:
    found = lead(
        '<article><h1>Bridge opens</h1><div class="Asset"><figure class="zoom"><img src="/i/tarn-bridge.jpg"></figure>'
        f"<figcaption>The mayor on the bridge</figcaption></div>{TEXT}</article>"
    )
    assert found is not None
    assert (found.url, found.caption) == ("https://northvale.example/i/tarn-bridge.jpg", "The mayor on the bridge")


def test_unclosed_sources_do_not_hide_figure_and_srcset() -> None:
    found = lead(
        '<article><h1>Bridge opens</h1><figure><picture><source srcset="/i/tarn-bridge.jpg?w=2000 2000w"><source '
        'srcset="/i/tarn-bridge.jpg?w=1000 1000w"><source srcset="/i/tarn-bridge.jpg?w=500 500w"><img '
        f'src="/i/tarn-bridge.jpg?w=90"></picture><figcaption>The mayor</figcaption></figure>{TEXT}</article>'
    )
    assert found is not None
    assert (found.url.rsplit("?", 1)[-1], found.caption) == ("w=2000", "The mayor")


def test_a_picture_between_heading_and_story_leads_wherever_the_story_element_begins() -> None:
    found = lead(
        '<header class="top"><h1>Bridge opens</h1></header><div id="article-masthead"><img src="/i/tarn-bridge.jpg" '
        'width="700"><div class="wp-caption"><p class="wp-caption-text">The mayor on the bridge</p></div></div>'
        f'<main><article>{TEXT}<img src="/i/other.jpg"></article></main>'
    )
    assert found is not None
    assert (found.url.rsplit("/", 1)[-1], found.caption) == ("tarn-bridge.jpg", "The mayor on the bridge")


def test_bars_and_cards_above_the_heading_do_not_lead() -> None:
    bar = '<div class="breaking"><img src="/i/now.jpg"></div><a href="/n/other"><img class="wp-post-image" src="/i/o.jpg"></a>'
    assert lead(f"{bar}<div><h1>Bridge opens</h1>{TEXT}</div>") is None
    hero = '<div class="post-image"><img src="/i/tarn-bridge.jpg"></div>'
    found = lead(f"{bar}{hero}<div><h1>Bridge opens</h1>{TEXT}</div>")
    assert found is not None
    assert found.url.endswith("/tarn-bridge.jpg")


def test_a_stand_in_gives_way_to_the_address_of_the_meta_tags() -> None:
    found = lead(
        '<article><h1>Bridge opens</h1><figure><img src="/r/?i=1475900002&r=TARN0C0YW&w=20"><figcaption>The mayor'
        f"</figcaption></figure>{TEXT}</article>",
        og("https://northvale.example/r/?i=1475900002&w=1200&r=TARN0C0YW"),
    )
    assert found is not None
    assert (found.caption, "w=1200" in found.url) == ("The mayor", True)


def test_a_differently_cut_share_picture_is_known_by_the_name_that_only_one_picture_has() -> None:
    found = lead(
        '<article><h1>Bridge opens</h1><img src="/media/900100/first.jpg"><p>Short.</p><figure><img '
        f'src="/media/817775/tarn.jpg"><figcaption>The mayor</figcaption></figure>{TEXT}</article>',
        og("https://northvale.example/media/817775/social/image.jpg"),
    )
    assert found is not None
    assert (found.url.rsplit("/", 2)[-2], found.caption) == ("817775", "The mayor")


def test_a_caption_whose_picture_a_script_puts_in_goes_to_the_share_picture() -> None:
    for box in (
        '<div class="InlineImage"><div class="x-imageCaption">The mayor on the bridge</div></div>',
        '<div class="pic"><img src="/"><div class="photographer">The mayor on the bridge on Monday. (NASA)</div></div>',
    ):
        found = lead(
            f"<div><h1>Bridge opens</h1>{box}{TEXT * 4}<figure><img src='/i/later.jpg'><figcaption>Later</figcaption></figure></div>",
            og("https://img.example/tarn-bridge.jpg"),
        )
        assert found is not None
        assert found.url == "https://img.example/tarn-bridge.jpg"
        assert found.caption.startswith("The mayor on the bridge")


def test_captions_in_plain_blocks_attributes_and_behind_buttons() -> None:
    aside = '<aside class="single-photo"><img src="/i/tarn.jpg"><p>Ilse Brandvik <span class="credit">(Photo: A. Reed)</span></p></aside>'
    data = '<figure><img src="/i/tarn.jpg"><div data-c-caption="The mayor on Monday" data-c-credit="A. Reed"></div></figure>'
    full = (
        '<div class="img"><img src="/i/tarn.jpg"><div class="caption"><div class="caption-full">The mayor on the '
        'bridge.<a> less</a></div><div class="caption-truncated">The mayor on<a> ... more</a></div></div></div>'
    )
    for block, caption in (
        (aside, "Ilse Brandvik (Photo: A. Reed)"),
        (data, "The mayor on Monday"),
        (full, "The mayor on the bridge."),
    ):
        found = lead(f"<article><h1>Bridge opens</h1>{block}{TEXT}</article>")
        assert found is not None
        assert found.caption == caption
    teaser = '<div class="image"><img src="/i/tarn.jpg"><a href="/n/2">Another story that is told elsewhere</a></div>'
    found = lead(f"<article><h1>Bridge opens</h1>{teaser}{TEXT}</article>")
    assert found is None or found.caption == ""


def test_a_line_that_only_credits_is_no_caption() -> None:
    block = '<figure class="photo"><img src="/i/tarn.jpg"><cite>Photo by A. Reed/Harbour Images</cite></figure>'
    found = lead(f"<article><h1>Bridge opens</h1>{block}{TEXT}</article>")
    assert found is not None
    assert (found.caption, found.credit) == ("", "A. Reed/Harbour Images")
    nested = '<div class="photo"><img src="/i/tarn.jpg"><span class="newsCaption">The mayor on Monday <span class="caption">(Image: HARBOUR)</span></span></div>'
    found = lead(f"<article><h1>Bridge opens</h1>{nested}{TEXT}</article>")
    assert found is not None
    assert found.caption.startswith("The mayor on Monday")


def test_the_writers_portrait_is_not_the_storys() -> None:
    found = images(
        f'<article><h1>Bridge opens</h1><img src="/i/reed-thumb.jpg" alt="A. Reed">{TEXT}</article>',
        '<meta name="author" content="A. Reed">',
    )
    assert found == ()


def test_an_address_in_an_attribute_of_the_scripts_own() -> None:
    found = lead(
        f'<article><h1>Bridge opens</h1><figure><img data-gl-src="https://img.example/tarn.jpg?w=660"></figure>{TEXT}</article>'
    )
    assert found is not None
    assert found.url == "https://img.example/tarn.jpg?w=660"


def test_the_column_that_holds_the_story_is_no_sidebar_whatever_its_class() -> None:
    found = lead(
        f'<main><h1>Bridge opens</h1><div class="l-sidebar-fixed sidebar"><figure><img src="/i/tarn.jpg"><figcaption>The mayor</figcaption></figure>{TEXT}</div></main>'
    )
    assert found is not None
    assert found.caption == "The mayor"


def test_a_block_with_a_heading_of_its_own_is_a_teaser_and_no_caption() -> None:
    teaser = (
        '<div class="photo"><img src="/i/tarn.jpg" alt=""><h2>The ferry stops</h2> It sails for the last time.</div>'
    )
    (found,) = images(f"<article><h1>Bridge opens</h1>{teaser}{TEXT}</article>")
    assert found.caption == ""

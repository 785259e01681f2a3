"""HTML, feeds and sitemap of the three sample publishers, each in its own way of writing them.

The Herald has JSON-LD and meta tags, the Courier meta tags and a time element, the Voice JSON-LD and a time element.
All say at the foot that the page is made up.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime

from flows.sample.articles import SITES, Picture, Site, Story

MADE_UP = (
    "This page was made up for a demonstration. What it says of Eileen Collins, Grace Hopper and Falcon 9 is true; "
    "everything else is invented, products included."
)
#: Stories that the Herald's feed lists twice, the second time with a campaign in the address.
TWICE = ("line-9-goes-electric", "code-day-in-schools")
#: Stories that the Courier's feed links to by a short address that redirects.
SHORT = ("quiet-home-test",)
SECTION_FRONT = "/section/technology/"


def page(story: Story) -> str:
    """The whole page."""
    site = story.site
    head = [
        f'<meta charset="{story.encoding}">',
        f"<title>{_e(story.title)} | {_e(site.name)}</title>",
        f'<link rel="canonical" href="{story.url}">',
        _meta("description", story.summary),
        _property("og:type", "article"),
        _property("og:site_name", site.name),
        _property("og:title", story.title),
        _property("og:url", story.url),
        *[_property("og:image", _source(site, picture)) for picture in story.pictures[:1]],
    ]
    if story.noai:
        head.append(_meta("robots", "noai, noimageai"))
    if site.key in ("herald", "courier"):
        head.append(_property("article:section", story.section))
        if story.published:
            head.append(_property("article:published_time", story.published.isoformat()))
        if story.modified:
            head.append(_property("article:modified_time", story.modified.isoformat()))
    if site.key != "courier" or story.claimed:
        head.append(f'<script type="application/ld+json">{_structured(story)}</script>')
    figures = [_figure(site, picture) for picture in story.pictures]
    body = [f"<p>{_e(text)}</p>" for text in story.paragraphs]
    if story.locked:
        body.append('<div class="wall"><p>Subscribe to continue reading. Already a subscriber? Sign in.</p></div>')
    # the first picture leads, the others stand between the paragraphs
    for place, figure in enumerate(figures[1:], 1):
        body.insert(min(2 * place, len(body)), figure)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>',
            *head,
            "</head>\n<body>",
            f'<header class="masthead"><a href="/">{_e(site.name)}</a> <nav>{_nav()}</nav></header>',
            "<main><article>",
            f"<h1>{_e(story.title)}</h1>",
            f'<p class="standfirst">{_e(story.summary)}</p>',
            _byline(story),
            *figures[:1],
            '<div class="story">',
            *body,
            "</div>\n</article></main>",
            f'<footer><p class="note">{_e(MADE_UP)}</p></footer>',
            "</body>\n</html>\n",
        )
    )


def front(site: Site, title: str, listed: Iterable[Story]) -> str:
    """A section front or the home page: a list of links."""
    items = "\n".join(f'<li><a href="{story.path}">{_e(story.title)}</a></li>' for story in listed)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_e(title)} | {_e(site.name)}</title>'
        f"</head>\n<body><header>{_e(site.name)}</header><main><h1>{_e(title)}</h1>\n<ul>\n{items}\n</ul></main>"
        f"<footer><p>{_e(MADE_UP)}</p></footer></body></html>\n"
    )


def rss(site: Site, listed: Iterable[Story]) -> str:
    """RSS 2.0 with RFC 822 dates; two stories stand in it twice."""
    items = []
    for story in listed:
        date = f"<pubDate>{format_datetime(story.published)}</pubDate>" if story.published else ""
        links = [story.url]
        if story.slug in TWICE:
            links.append(f"{story.url}?utm_source=feed&amp;utm_medium=rss")
        items += [
            f"<item><title>{_e(story.title)}</title><link>{link}</link>"
            f"<guid isPermaLink='false'>{story.slug}-{n}</guid>"
            f"<category>{_e(story.section)}</category><description>{_e(story.summary)}</description>{date}</item>"
            for n, link in enumerate(links)
        ]
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>{_e(site.name)}</title>'
        f"<link>{site.base}/</link><description>News from {_e(site.name)}</description><language>en</language>\n"
        + "\n".join(items)
        + "\n</channel></rss>\n"
    )


def atom(site: Site, listed: Iterable[Story]) -> str:
    """Atom with published and updated; one entry is a section front, one links by a short address."""
    entries = []
    for story in listed:
        link = f"{site.base}/go/{story.slug}" if story.slug in SHORT else story.url
        published = f"<published>{story.published.isoformat()}</published>" if story.published else ""
        updated = (story.modified or story.published or datetime(2026, 11, 22, tzinfo=UTC)).isoformat()
        entries.append(
            f"<entry><id>{story.url}</id><title>{_e(story.title)}</title><link href='{link}'/>{published}"
            f"<updated>{updated}</updated><summary>{_e(story.summary)}</summary>"
            f"<category term='{_e(story.section)}'/></entry>"
        )
    entries.append(
        f"<entry><id>{site.base}{SECTION_FRONT}</id><title>All of Technology</title>"
        f"<link href='{site.base}{SECTION_FRONT}'/><updated>2026-11-20T08:00:00Z</updated></entry>"
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">'
        f"<title>{_e(site.name)}</title><id>{site.base}/</id><updated>2026-11-22T12:00:00Z</updated>\n"
        + "\n".join(entries)
        + "\n</feed>\n"
    )


def news_sitemap(site: Site, listed: Iterable[Story]) -> str:
    """A news sitemap; the undated story has no publication date there either."""
    rows = []
    for story in listed:
        date = (
            f"<news:publication_date>{story.published.isoformat()}</news:publication_date>" if story.published else ""
        )
        rows.append(
            f"<url><loc>{story.url}</loc><news:news><news:publication><news:name>{_e(site.name)}</news:name>"
            f"<news:language>en</news:language></news:publication>{date}"
            f"<news:title>{_e(story.title)}</news:title></news:news></url>"
        )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">\n' + "\n".join(rows) + "\n</urlset>\n"
    )


def robots(site: Site) -> str:
    """robots.txt; the Courier closes its members' folder."""
    closed = {"herald": "/admin/", "courier": "/members/", "voice": "/search/"}[site.key]
    lines = ["User-agent: *", f"Disallow: {closed}"]
    if site.list_kind == "sitemap":
        lines.append(f"Sitemap: {site.base}{site.list_path}")
    return "\n".join(lines) + "\n"


def _e(text: str) -> str:
    return html.escape(text, quote=True)


def _meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{_e(content)}">'


def _property(name: str, content: str) -> str:
    return f'<meta property="{name}" content="{_e(content)}">'


def _nav() -> str:
    return " ".join(f'<a href="{site.base}/">{_e(site.name)}</a>' for site in SITES.values())


def _source(site: Site, picture: Picture) -> str:
    return f"{site.base}/images/{picture.file}"


def _byline(story: Story) -> str:
    when = ""
    if story.published and story.site.key in ("courier", "voice"):
        when = f' <time datetime="{story.published.isoformat()}">{story.published:%d %B %Y, %H.%M}</time>'
    return f'<p class="byline">By <span class="author">{_e(story.author)}</span>{when}</p>'


def _figure(site: Site, picture: Picture) -> str:
    """The Herald prints the credit inside the caption, the Courier below it, the Voice only in its JSON-LD."""
    credit = f' <span class="credit">{_e(picture.credit)}</span>' if picture.credit and site.key != "voice" else ""
    inside, below = (credit, "") if site.key == "herald" else ("", credit)
    caption = f"<figcaption>{_e(picture.caption)}{inside}</figcaption>" if picture.caption else ""
    return f'<figure><img src="/images/{picture.file}" alt="">{caption}{below}</figure>'


def _structured(story: Story) -> str:
    value: dict[str, object] = {
        "@context": "https://schema.org",
        "@type": "LiveBlogPosting" if story.live else "NewsArticle",
        "headline": story.title,
        "mainEntityOfPage": story.url,
        "articleSection": story.section,
        "author": {"@type": "Person", "name": story.author},
        "publisher": {"@type": "NewsMediaOrganization", "name": story.site.name},
        "inLanguage": "en",
    }
    if when := story.claimed or story.published:
        value["datePublished"] = when.isoformat()
    if story.modified:
        value["dateModified"] = story.modified.isoformat()
    if story.locked:
        value["isAccessibleForFree"] = False
    value["image"] = [
        {
            "@type": "ImageObject",
            "url": _source(story.site, picture),
            "caption": picture.caption,
            "creditText": picture.credit,
            **({"license": picture.rights} if picture.rights else {}),
        }
        for picture in story.pictures
    ]
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")

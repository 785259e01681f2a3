"""What is not an article though it looks like one: paywall stubs, consent texts, section fronts, live blogs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from engine.core.schema import Code
from engine.news.page.jsonld import Structured

_PAYWALL = re.compile(
    r"(?i)(subscribe (now )?to (continue|read|keep)|to continue reading|already a subscriber|subscribers? only|"
    r"for subscribers|this (article|story|content) is (reserved )?for|unlock this (article|story)|"
    r"sign in to (continue|read)|register to (continue|read)|start your (free )?trial|become a (member|subscriber)|"
    r"weiterlesen mit|jetzt abonnieren|diesen artikel (weiter)?lesen|réservé aux abonnés|"
    r"contenido exclusivo para suscriptores|you have reached your (article )?limit|to read the full (story|article))"
)
_CONSENT = re.compile(
    r"(?i)(we (and our partners )?(use|store) cookies|we value your privacy|consent to (the use|cookies)|"
    r"cookie (policy|settings|preferences)|accept all( cookies)?|manage (your )?(privacy )?(settings|preferences)|"
    r"before you continue|verify (that )?you are (a )?human|checking your browser|enable javascript and cookies|"
    r"wir verwenden cookies|nous utilisons des cookies)"
)
_LIVE_PATH = re.compile(r"(?i)(/live[-/](updates?|blog|news)|live-?blog|liveticker|/live/\d|-live-updates)")
_FRONT_PATH = re.compile(r"(?i)^/(tag|tags|topic|topics|category|categories|section|author|authors|search|archive)/")
#: A stub has some paragraphs of teaser; a text of this length is worth reading whatever stands beside it.
STUB_CHARS = 1500


def kind_problem(
    tree: Any, url: str, text: str, *, metas: Mapping[str, str], data: Structured
) -> tuple[Code, str] | None:
    """The code and the reason why this page is no article, or None."""
    if "LiveBlogPosting" in data.types or _LIVE_PATH.search(urlsplit(url).path):
        return Code.LIVE_BLOG, "a live blog: it has no one date and text"
    free = data.article.get("isAccessibleForFree")
    parts = data.article.get("hasPart")
    hidden = any(
        isinstance(part, Mapping) and str(part.get("isAccessibleForFree")).lower() == "false"
        for part in (parts if isinstance(parts, list) else [parts])
    )
    locked = str(free).lower() == "false" or hidden or metas.get("article:content_tier", "").lower() == "locked"
    if len(text) < STUB_CHARS and (locked or _PAYWALL.search(_visible(tree))):
        return Code.PAYWALL, "marked as locked" if locked else "asks for a subscription"
    if len(text) < STUB_CHARS and len(_CONSENT.findall(text)) >= 2:
        return Code.CONSENT_PAGE, "the text is about cookies or a check of the browser"
    if front := _front(tree, url, text, metas, data):
        return Code.SECTION_FRONT, front
    return None


def _front(tree: Any, url: str, text: str, metas: Mapping[str, str], data: Structured) -> str:
    path = urlsplit(url).path
    is_article = bool(data.article) or metas.get("og:type", "").lower() == "article"
    if path.strip("/") == "" and not urlsplit(url).query:
        return "the address is a front page"
    if _FRONT_PATH.match(path) and not is_article:
        return "the address is a list's"
    lists = data.types & {"CollectionPage", "ItemList", "SearchResultsPage", "ProfilePage"}
    if lists and not is_article and len(text) < STUB_CHARS:
        return f"marked as {min(lists)}"
    if len(tree.xpath("//article")) >= 6 and not is_article and len(text) < STUB_CHARS:
        return "many short articles, none of them the page's own"
    return ""


def _visible(tree: Any) -> str:
    parts = tree.xpath("//body//text()[not(ancestor::script or ancestor::style or ancestor::noscript)]")
    return " ".join(" ".join(parts).split())[:60_000]

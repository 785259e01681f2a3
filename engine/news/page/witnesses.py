"""What a page says of its own date: every witness, with what it wrote. Which one counts is decided in `decide`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from engine.core.schema import DateWitness, WitnessKind
from engine.news.dates import EARLIEST, DateRead, parse_date
from engine.news.page.jsonld import Structured, strings
from engine.news.page.markup import excerpt, text_of
from engine.news.page.metadata import newspaper_extractor

#: Meta tags that state the publication date by name, in order of trust.
PUBLISHED_TAGS = (
    "article:published_time",
    "datepublished",
    "og:published_time",
    "og:article:published_time",
    "rnews:datepublished",
    "originalpublicationdate",
    "article:published",
    "article_date_original",
    "publication_date",
    "parsely-pub-date",
    "sailthru.date",
    "publishdate",
    "publish-date",
    "publish_date",
    "published-date",
    "pubdate",
    "cxenseparse:recs:publishtime",
    "vr:published_time",
    "bt:pubdate",
    "citation_publication_date",
    "citation_online_date",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date.created",
    "dcterms.created",
)
#: Tags that may mean anything that has to do with time.
VAGUE_TAGS = ("date", "dc.date", "dcterms.date", "article.created", "created", "datecreated", "displaydate")
MODIFIED_TAGS = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "last-modified",
    "lastmod",
    "dcterms.modified",
    "dc.date.modified",
    "article.updated",
)
#: Mark of a witness that alone proves nothing.
WEAK = "weak"
#: Mark of a guess whose month stands in the address, as in /2026/03/bridge-opens.
MONTH_IN_URL = "the address names its month"
#: Mark of a date that stands beside the headline, where a page tells its readers.
BESIDE_HEADLINE = "beside the headline"
#: A line this long belongs to the story, and a date in it may be that of any event.
STORY_LINE_CHARS = 160
DATE_LINE_CHARS = 70
_INLINE = frozenset({"b", "strong", "em", "i", "u", "font", "small", "mark", "abbr", "sup"})
_URL_DAY = re.compile(r"/(20\d\d|19\d\d)([/-])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?=[/_-]|$)")
_URL_MONTH = re.compile(r"/(20\d\d|19\d\d)[/-](0[1-9]|1[0-2])(?=/|$)")
_URL_COMPACT = re.compile(r"(?:^|[/_-])(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=[/_.-]|$)")
_ELSEWHERE = re.compile(
    r"(?i)(related|teaser|sidebar|recommend|most|popular|trending|latest|comment|footer|ticker|newsletter|more-|promo|"
    r"read-?(next|also|more)|widget|latest-news|archive|carousel)"
)
_DATED = re.compile(r"(?i)(publi|date|time|posted|byline|meta|created|veroeff|dateline|timestamp)")
_MODIFIED = re.compile(r"(?i)(modif|updat|edited|aktualis|mise.?à.?jour|actuali[sz])")


def page_witnesses(
    tree: Any, url: str, *, metas: Mapping[str, str], data: Structured, language: str, latest: datetime | None
) -> list[DateWitness]:
    """All witnesses of a page, strong ones first. `latest` is the first instant that cannot be its date."""
    day_first = day_first_of(language)
    found: list[DateWitness] = []

    def add(
        kind: WitnessKind,
        raw: str,
        role: Literal["published", "modified"] = "published",
        note: str = "",
    ) -> bool:
        read = parse_date(raw, latest=latest, day_first=day_first)
        if read is not None:
            found.append(witness(kind, read, raw, role=role, note=note))
        return read is not None

    loose = "read from a broken block" if data.loose else ""
    for raw in strings(data.article.get("datePublished")) or strings(data.article.get("dateCreated")):
        add("jsonld", raw, note=loose)
    for name in PUBLISHED_TAGS:
        if name in metas:
            add("meta", metas[name])
    _times(tree, add)
    _beside_headline(tree, add)
    if day := url_day(url, latest=latest):
        found.append(DateWitness(kind="url", value=day, precision="day", zone="none", raw=f"{day:%Y-%m-%d}"))
    for raw in strings(data.page.get("datePublished")):
        add("jsonld", raw, note=WEAK)
    for name in VAGUE_TAGS:
        if name in metas:
            add("meta", metas[name], note=WEAK)
    for raw in strings(data.article.get("dateModified")):
        add("jsonld", raw, role="modified")
    for name in MODIFIED_TAGS:
        if name in metas:
            add("meta", metas[name], role="modified")
    found += _guesses(tree, url, found, latest)
    return list(dict.fromkeys(found))


def witness(
    kind: WitnessKind,
    read: DateRead,
    raw: str,
    *,
    role: Literal["published", "modified"] = "published",
    note: str = "",
    credible: bool = True,
) -> DateWitness:
    """A date that was read, as a witness."""
    return DateWitness(
        kind=kind,
        value=read.value,
        precision=read.precision,
        role=role,
        zone=read.zone,
        raw=raw.strip()[:120],
        credible=credible,
        note="; ".join(part for part in (note, read.note) if part),
    )


def day_first_of(language: str) -> bool | None:
    """Whether 05/03/2026 is 5 March in a language: not in the United States; unknown for English without region."""
    if not language:
        return None
    if language in ("en-US", "en-PH"):
        return False
    return None if language == "en" else True


def url_day(url: str, *, latest: datetime | None) -> datetime | None:
    """Midnight UTC of a day in the URL's path. Only whole path parts are dates: in /2026/03/92713 there is none."""
    path = re.sub(r"^https?://[^/]+", "", url.split("?", 1)[0])
    match = _URL_DAY.search(path)
    parts = (match[1], match[3], match[4]) if match else None
    if parts is None and (compact := _URL_COMPACT.search(path)):
        parts = (compact[1], compact[2], compact[3])
    if parts is None:
        return None
    try:
        day = datetime(int(parts[0]), int(parts[1]), int(parts[2]), tzinfo=UTC)
    except ValueError:
        return None
    return day if day >= EARLIEST and (latest is None or day < latest) else None


def _month_in_url(url: str, day: datetime) -> bool:
    match = _URL_MONTH.search(re.sub(r"^https?://[^/]+", "", url.split("?", 1)[0]))
    return match is not None and (int(match[1]), int(match[2])) == (day.year, day.month)


def _times(tree: Any, add: Any) -> None:
    """Dates in the page's own body: marked by itemprop first, then time elements near the headline."""
    plain = 0
    for node in tree.xpath("//*[@itemprop='datePublished' or @itemprop='dateModified'] | //time"):
        if node.tag == "meta" or _elsewhere(node):
            continue
        prop = node.get("itemprop") or ""
        raw = node.get("datetime") or node.get("content") or node.get("title") or text_of(node)
        parent = node.getparent()
        around = parent.get("class") if parent is not None else ""
        told = f"{node.get('class') or ''} {node.get('id') or ''} {around or ''}"
        if prop == "dateModified" or (prop != "datePublished" and _MODIFIED.search(f"{told} {text_of(node)}")):
            add("time", raw, "modified")
        elif prop == "datePublished" or node.get("pubdate") is not None:
            add("time", raw)
        elif plain < 2:
            plain += 1
            add("time", raw, note=WEAK)


def _beside_headline(tree: Any, add: Any) -> None:
    """The first date written out beside the headline: in a short line after it and before the story, or just above."""
    heads = tree.xpath("//h1")
    if not heads:
        return
    head = heads[0]
    for axis, reach in (("following", 40), ("preceding", 12)):
        nodes = head.xpath(f"{axis}::text()[normalize-space()]")
        # "preceding" comes in document order too; the nearest counts
        for text in nodes[:reach] if axis == "following" else reversed(nodes[-reach:]):
            line = " ".join(str(text).split())
            parent = text.getparent()
            if parent is None or parent.tag in ("script", "style", "noscript", "time", "option", "a"):
                continue
            if len(line) >= STORY_LINE_CHARS and axis == "following":
                break
            if len(line) > DATE_LINE_CHARS or not re.search(r"\d", line) or _MODIFIED.search(line):
                continue
            if _elsewhere(parent) or len(text_of(_block(parent))) > DATE_LINE_CHARS:
                continue
            if add("time", line, note=f"{WEAK}; {BESIDE_HEADLINE}"):
                return


def _block(node: Any) -> Any:
    """The element around inline markup: a date in bold within a sentence is the sentence's."""
    while node.tag in _INLINE and node.getparent() is not None:
        node = node.getparent()
    return node


def _elsewhere(node: Any) -> bool:
    """Whether an element belongs to other stories, comments or the frame of the page."""
    current = node
    while current is not None:
        if current.tag in ("aside", "footer", "nav", "li"):
            return True
        if current.tag not in ("html", "body") and _ELSEWHERE.search(
            f"{current.get('class') or ''} {current.get('id') or ''}"
        ):
            return True
        current = current.getparent()
    return False


def _guesses(tree: Any, url: str, told: list[DateWitness], latest: datetime | None) -> list[DateWitness]:
    """htmldate's and newspaper's readings; each may confirm, alone each is weak."""
    found: list[DateWitness] = []
    guess = _htmldate(tree, url, latest)
    if guess is not None:
        note = WEAK
        if (guess.month, guess.day) == (1, 1) and not any(_same_day(guess, other.value) for other in told):
            note = "weak; only a year"
        elif _month_in_url(url, guess):
            note = f"{WEAK}; {MONTH_IN_URL}"
        found.append(
            DateWitness(
                kind="htmldate",
                value=guess,
                precision="day",
                zone="none",
                raw=f"{guess:%Y-%m-%d}",
                credible="only a year" not in note,
                note=note,
            )
        )
    read = _newspaper(tree, url)
    # dateutil fills what is missing from today's date: newspaper may confirm a day, never bring one
    if read is not None and any(_same_day(read, other.value) for other in [*told, *found]):
        found.append(
            DateWitness(kind="newspaper", value=read, precision="day", zone="none", raw=f"{read:%Y-%m-%d}", note=WEAK)
        )
    return found


def _same_day(a: datetime, b: datetime) -> bool:
    return abs((a.date() - b.date()).days) <= 1


def _htmldate(tree: Any, url: str, latest: datetime | None) -> datetime | None:
    from htmldate import find_date

    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    last = (latest - timedelta(seconds=1)) if latest is not None else datetime(2100, 1, 1, tzinfo=UTC)
    try:
        found = find_date(
            tree,
            original_date=True,
            extensive_search=True,
            url=url or None,
            min_date=EARLIEST.replace(tzinfo=None),
            max_date=last.replace(tzinfo=None),
        )
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return datetime.fromisoformat(found).replace(tzinfo=UTC) if found else None


def _newspaper(tree: Any, url: str) -> datetime | None:
    try:
        found = newspaper_extractor().get_publishing_date(
            url, excerpt(tree, ("property", "name", "itemprop", "pubdate"))
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None
    if not isinstance(found, datetime):
        return None
    return datetime(found.year, found.month, found.day, tzinfo=UTC)

"""`type = "gdelt"`: the article list of the GDELT DOC 2.0 API.

The list stops at 250 without saying so: a full answer means that the range is halved and asked again. Errors come as
plain text with status 200 and are told apart from "no articles". `seendate` is when GDELT saw a page (in steps of a
quarter of an hour) and only a weak witness.

Options: `query` (text or list) or `terms`, `language` (GDELT's name, e.g. english), `country` (e.g. US), `domain`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from engine.core.config import CollectSection, SourceSection
from engine.core.errors import ConfigError
from engine.core.schema import Code, ImageClaim, Link, Rejected, Window
from engine.news.dates import parse_date
from engine.news.deps import NewsDeps
from engine.news.page.witnesses import WEAK, witness
from engine.news.sources.base import SourceError, drop, get, latest_of
from engine.news.terms import terms_of

BASE = "https://api.gdeltproject.org/api/v2/doc/doc"
MAX_RECORDS = 250
#: The service asks for no more than one request in five seconds.
WAIT_S = 5.0
RATE_TRIES = 3
#: A range this short that is still full cannot be split further (the service's clock has quarter hours).
SHORTEST = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Answer:
    """`error` is set where the service refused; then there are no articles."""

    articles: tuple[Mapping[str, Any], ...] = ()
    error: Literal["", "bad_query", "rate_limited", "not_json"] = ""
    detail: str = ""

    @property
    def saturated(self) -> bool:
        return len(self.articles) >= MAX_RECORDS


class GdeltSource:
    """Links found by terms; ranges are split until no part is full."""

    async def links(
        self, window: Window, row: SourceSection, config: CollectSection, *, deps: NewsDeps
    ) -> list[Link | Rejected]:
        found: list[Link | Rejected] = []
        failures: list[SourceError] = []
        terms = await terms_of(row, window, deps=deps)
        for term in terms:
            if term is None:
                raise ConfigError(f"source '{row.name}': gdelt needs options.query or options.terms")
            try:
                found += await _range(term, window.start, window.end, window, row, deps)
            except SourceError as error:
                failures.append(error)
                found.append(drop(f"{row.name}: {term}", row, error.code, error.detail))
        if terms and len(failures) == len(terms):
            raise failures[0]
        return found


async def _range(
    term: str, start: datetime, end: datetime, window: Window, row: SourceSection, deps: NewsDeps
) -> list[Link | Rejected]:
    answer = await _patient(query_url(row, term, start, end), row, deps)
    if answer.saturated and end - start > SHORTEST:
        middle = start + (end - start) / 2
        middle = middle.replace(second=0, microsecond=0)
        left = await _range(term, start, middle, window, row, deps)
        return left + await _range(term, middle, end, window, row, deps)
    found: list[Link | Rejected] = [_link(item, term, window, row) for item in answer.articles]
    if answer.saturated:
        found.append(
            drop(f"{row.name}: {term} {start:%Y-%m-%dT%H:%M}", row, Code.LIMIT, "full even for a quarter hour")
        )
    return found


async def _patient(url: str, row: SourceSection, deps: NewsDeps) -> Answer:
    wait_s = float(row.options.get("wait_s", WAIT_S))
    for attempt in range(RATE_TRIES):
        body, _, _ = await get(deps.fetcher, url, api=True)
        answer = read_answer(body)
        if answer.error == "bad_query":
            raise SourceError(Code.SOURCE_BAD_QUERY, answer.detail)
        if answer.error == "not_json":
            raise SourceError(Code.SOURCE_NOT_A_FEED, answer.detail)
        if not answer.error:
            return answer
        if attempt + 1 < RATE_TRIES:
            await asyncio.sleep(wait_s * (attempt + 1))
    raise SourceError(Code.SOURCE_RATE_LIMITED, answer.detail)


def query_url(row: SourceSection, term: str, start: datetime, end: datetime) -> str:
    """Address of one query; the API's end is inclusive to the second."""
    parts = [term]
    for option, operator in (("language", "sourcelang"), ("country", "sourcecountry"), ("domain", "domainis")):
        if value := row.options.get(option):
            parts.append(f"{operator}:{value}")
    last = end - timedelta(seconds=1)
    query = {
        "query": " ".join(parts),
        "mode": "artlist",
        "format": "json",
        "maxrecords": str(MAX_RECORDS),
        "sort": "dateasc",
        "startdatetime": f"{start:%Y%m%d%H%M%S}",
        "enddatetime": f"{last:%Y%m%d%H%M%S}",
    }
    return f"{row.url or BASE}?{urlencode(query)}"


def read_answer(body: bytes) -> Answer:
    """Decode an answer. Backslashes that are no JSON escapes are kept as characters, control characters are taken."""
    text = body.decode("utf-8", errors="replace").lstrip("\ufeff").strip()
    if text.startswith("{"):
        # before anything that JSON does not escape, a backslash is the title's own; so is one before "b" or "t" that
        # follows a letter or colon, as in a path, but that cannot be told from an escape and is left
        for candidate in (text, re.sub(r'\\(?!["\\/bfnrtu])|\\(?=u(?![0-9a-fA-F]{4}))', r"\\\\", text)):
            try:
                found = json.loads(candidate, strict=False)
            except ValueError:
                continue
            articles = found.get("articles") or [] if isinstance(found, dict) else []
            return Answer(tuple(item for item in articles if isinstance(item, dict) and item.get("url")))
        return Answer(error="not_json", detail="the answer begins like JSON and is none")
    told = " ".join(re.sub(r"<[^>]+>", " ", text).split())[:200]
    if re.search(r"(?i)limit requests|too many requests|rate limit", text):
        return Answer(error="rate_limited", detail=told)
    return Answer(error="bad_query", detail=told or "an empty answer")


def _link(item: Mapping[str, Any], term: str, window: Window, row: SourceSection) -> Link:
    seen = str(item.get("seendate") or "")
    read = parse_date(seen, latest=latest_of(window))
    picture = str(item.get("socialimage") or "")
    title = " ".join("".join(" " if ord(c) < 32 else c for c in str(item.get("title") or "")).split())
    return Link(
        url=str(item["url"]),
        source=row.name,
        source_type="gdelt",
        publisher=row.publisher or str(item.get("domain") or ""),
        title=title,
        section=row.section,
        term=term,
        witnesses=(witness("api", read, seen, note=WEAK),) if read is not None else (),
        images=(ImageClaim(url=picture, role="feed"),) if picture.startswith("http") else (),
    )

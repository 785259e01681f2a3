"""General search engines: SearXNG (self-hosted, no key), Brave, Google Programmable Search.

Each only asks and reads the answer into claims; `pages` fetches and dates. Dates in requests are hints to the service,
what counts is checked again on what comes back. Image results of these services carry no date of their own, or one that
says when they were seen: without a date an image never passes a cut-off, so with one they seldom give references.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from engine.core.protocols import Fetcher, ImageHit, Meter, TextHit
from engine.web.search.api import Api
from engine.web.search.guard import read_instant
from engine.web.search.pages import Claim, PageReader, image_hits, text_hits


class _Engine(ABC):
    """What the engines share: claims in, hits out."""

    name: str = ""

    def __init__(self, api: Api, *, fetcher: Fetcher, read: PageReader) -> None:
        self._api = api
        self._fetcher = fetcher
        self._read = read

    def metered(self, meter: Meter) -> Self:
        """Let every call be paid for."""
        self._api.meter = meter
        return self

    async def close(self) -> None:
        await self._api.close()

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        claims = await self._claims(query, limit, until, images=False)
        return await text_hits(
            claims, fetcher=self._fetcher, read=self._read, limit=limit, until=until, blocked=blocked
        )

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        claims = await self._claims(query, limit, until, images=True)
        return await image_hits(claims, fetcher=self._fetcher, limit=limit, until=until, blocked=blocked)

    @abstractmethod
    async def _claims(self, query: str, limit: int, until: datetime | None, *, images: bool) -> list[Claim]:
        """What the service says it found, unread."""


class SearxNg(_Engine):
    """A SearXNG instance with `json` among its formats; `url` is its address."""

    name = "searxng"

    def __init__(self, url: str, *, fetcher: Fetcher, read: PageReader, api: Api | None = None) -> None:
        super().__init__(api or Api("SearXNG"), fetcher=fetcher, read=read)
        self._url = url.rstrip("/")

    async def _claims(self, query: str, limit: int, until: datetime | None, *, images: bool) -> list[Claim]:
        category = "images" if images else "news,general"
        found = await self._api.get(
            f"{self._url}/search", {"q": query, "format": "json", "categories": category, "language": "en"}
        )
        return [
            Claim(
                url=_str(row, "url"),
                title=_str(row, "title"),
                snippet=_str(row, "content"),
                published=read_instant(_str(row, "publishedDate")),
                image_url=_str(row, "img_src"),
            )
            for row in _rows(found, "results")
            if _str(row, "url") and (not images or _str(row, "img_src"))
        ]


class Brave(_Engine):
    """Brave Search API; the key is sent as X-Subscription-Token."""

    name = "brave"
    HOST = "https://api.search.brave.com"

    def __init__(
        self, key: str, *, fetcher: Fetcher, read: PageReader, host: str = HOST, api: Api | None = None
    ) -> None:
        made = api or Api("Brave Search", secret="BRAVE_API_KEY", headers={"X-Subscription-Token": key})
        super().__init__(made, fetcher=fetcher, read=read)
        self._host = host.rstrip("/")

    async def _claims(self, query: str, limit: int, until: datetime | None, *, images: bool) -> list[Claim]:
        kind = "images" if images else "web"
        params: dict[str, str | int] = {"q": query[:400], "count": min(20, max(10, limit * 3))}
        if until is not None and not images:
            last = (until - timedelta(microseconds=1)).date()
            params["freshness"] = f"2000-01-01to{last.isoformat()}"
        found = await self._api.get(f"{self._host}/res/v1/{kind}/search", params)
        rows = _rows(found, "results") if images else _rows(found.get("web"), "results")
        claims = []
        for row in rows:
            shown = row.get("properties")
            image = _str(shown, "url") if isinstance(shown, dict) else ""
            claims.append(
                Claim(
                    url=_str(row, "url"),
                    title=_str(row, "title"),
                    snippet=_str(row, "description"),
                    published=read_instant(_zoned(_str(row, "page_age") or _str(row, "page_fetched"))),
                    image_url=image,
                )
            )
        return [claim for claim in claims if claim.url and (not images or claim.image_url)]


class GoogleSearch(_Engine):
    """Google Programmable Search (Custom Search JSON API): a key and a search engine's id."""

    name = "google"
    HOST = "https://www.googleapis.com"

    def __init__(
        self, key: str, engine: str, *, fetcher: Fetcher, read: PageReader, host: str = HOST, api: Api | None = None
    ) -> None:
        made = api or Api("Google Programmable Search", secret="GOOGLE_API_KEY and [rose] google_engine")
        super().__init__(made, fetcher=fetcher, read=read)
        self._key, self._engine, self._host = key, engine, host.rstrip("/")

    async def _claims(self, query: str, limit: int, until: datetime | None, *, images: bool) -> list[Claim]:
        params: dict[str, str | int] = {"key": self._key, "cx": self._engine, "q": query, "num": 10}
        if images:
            params["searchType"] = "image"
        if until is not None:
            last = (until - timedelta(microseconds=1)).date()
            params["sort"] = f"date:r:20000101:{last:%Y%m%d}"
        found = await self._api.get(f"{self._host}/customsearch/v1", params)
        claims = []
        for row in _rows(found, "items"):
            page = row.get("image")
            context = _str(page, "contextLink") if isinstance(page, dict) else ""
            claims.append(
                Claim(
                    url=(context or _str(row, "link")) if images else _str(row, "link"),
                    title=_str(row, "title"),
                    snippet=_str(row, "snippet"),
                    published=_google_date(row),
                    image_url=_str(row, "link") if images else "",
                )
            )
        return [claim for claim in claims if claim.url]


def _google_date(row: Mapping[str, Any]) -> datetime | None:
    """The publication date among a result's meta tags, if it is written with a zone or as a day."""
    pagemap = row.get("pagemap")
    tags = pagemap.get("metatags") if isinstance(pagemap, dict) else None
    for tag in tags if isinstance(tags, list) else []:
        for name in ("article:published_time", "date", "og:updated_time"):
            found = read_instant(_str(tag, name)) if isinstance(tag, dict) else None
            if found is not None:
                return found
    return None


def _zoned(text: str) -> str:
    """Brave writes UTC without saying so: "2026-03-04T08:00:00" is given its zone."""
    return f"{text}+00:00" if len(text) == 19 and text[10:11] == "T" else text


def _rows(found: Any, key: str) -> list[dict[str, Any]]:
    listed = found.get(key) if isinstance(found, dict) else None
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _str(row: Any, key: str) -> str:
    value = row.get(key) if isinstance(row, dict) else None
    return value.strip() if isinstance(value, str) else ""

"""Wikipedia for text, Wikidata and Commons for pictures: no key, and the one source that can be read as of a date.

Text is the revision that was current at the cut-off, not today's page. Pictures are the entity's own of Wikidata
(P18), then what Commons finds; they count from the day they were uploaded. The services ask for an agent string with a
contact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from engine.core.protocols import Fetcher, ImageHit, TextHit
from engine.web.search.api import Api
from engine.web.search.guard import Blocked, in_time, read_instant
from engine.web.search.pages import Claim, image_hits

_SKIP = frozenset({"table", "style", "script", "sup", "figure", "ol", "math"})


class Wikimedia:
    """The `Search` called "wikipedia". The three hosts are settings for tests and mirrors."""

    name = "wikipedia"

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        agent: str,
        wikipedia: str = "https://en.wikipedia.org",
        wikidata: str = "https://www.wikidata.org",
        commons: str = "https://commons.wikimedia.org",
        api: Api | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._api = api or Api("Wikimedia", headers={"User-Agent": agent})
        self._wikipedia, self._wikidata, self._commons = (h.rstrip("/") for h in (wikipedia, wikidata, commons))

    async def close(self) -> None:
        await self._api.close()

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        """Pages for the query as they stood before `until`; a page that did not exist yet is left out."""
        guard = Blocked(blocked)
        found = await self._ask(
            self._wikipedia, {"action": "query", "list": "search", "srsearch": query, "srlimit": limit * 2}
        )
        hits: list[TextHit] = []
        for row in _rows(found.get("query"), "search"):
            title = str(row.get("title", ""))
            url = f"{self._wikipedia}/wiki/{title.replace(' ', '_')}"
            if not title or url in guard:
                continue
            revision = await self._revision(title, until)
            if revision is None:
                continue
            number, stamp = revision
            parsed = await self._ask(self._wikipedia, {"action": "parse", "oldid": number, "prop": "text"})
            body = parsed.get("parse")
            html = body.get("text") if isinstance(body, dict) else None
            text = paragraphs(html) if isinstance(html, str) else ""
            if text:
                hits.append(TextHit(url=url, title=title, text=text, published=stamp, score=-len(hits)))
            if len(hits) == limit:
                break
        return hits

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        names = await self._own_pictures(query)
        titles = [f"File:{name}" for name in names]
        claims = await self._files({"titles": "|".join(titles)}) if titles else []
        if len(claims) < limit:
            more = await self._files(
                {
                    "generator": "search",
                    "gsrsearch": f'"{query}" filetype:bitmap',
                    "gsrnamespace": 6,
                    "gsrlimit": limit * 2,
                }
            )
            seen = {claim.image_url for claim in claims}
            claims += [claim for claim in more if claim.image_url not in seen]
        return await image_hits(claims, fetcher=self._fetcher, limit=limit, until=until, blocked=blocked)

    async def _revision(self, title: str, until: datetime | None) -> tuple[int, datetime] | None:
        """Id and instant of the last revision before `until`."""
        params: dict[str, str | int] = {
            "action": "query",
            "prop": "revisions",
            "titles": title,
            "rvprop": "ids|timestamp",
            "rvlimit": 1,
        }
        if until is not None:
            # the service's instants have whole seconds and its bound is inclusive
            params |= {"rvdir": "older", "rvstart": f"{_before(until):%Y-%m-%dT%H:%M:%SZ}"}
        found = await self._ask(self._wikipedia, params)
        for page in _rows(found.get("query"), "pages"):
            for revision in _rows(page, "revisions"):
                stamp = read_instant(str(revision.get("timestamp", "")).replace("Z", "+00:00"))
                if stamp is not None and in_time(stamp, until) and isinstance(revision.get("revid"), int):
                    return int(revision["revid"]), stamp
        return None

    async def _own_pictures(self, name: str) -> list[str]:
        """File names of P18 of the first entity whose label or alias is this name."""
        found = await self._ask(
            self._wikidata,
            {"action": "wbsearchentities", "search": name, "language": "en", "type": "item", "limit": 3},
        )
        for row in _rows(found, "search"):
            match = row.get("match")
            said = str(match.get("text", "")) if isinstance(match, dict) else str(row.get("label", ""))
            if said.casefold() != name.casefold():
                continue
            claims = await self._ask(
                self._wikidata, {"action": "wbgetclaims", "entity": str(row.get("id", "")), "property": "P18"}
            )
            listed = claims.get("claims")
            return _file_names(listed.get("P18") if isinstance(listed, dict) else None)
        return []

    async def _files(self, which: Mapping[str, str | int]) -> list[Claim]:
        found = await self._ask(
            self._commons,
            {
                "action": "query",
                "prop": "imageinfo",
                "iiprop": "url|timestamp|mime",
                "iiurlwidth": 640,
                **which,
            },
        )
        pages = sorted(
            _rows(found.get("query"), "pages"), key=lambda page: (page.get("index", 0), str(page.get("title")))
        )
        claims = []
        for page in pages:
            for info in _rows(page, "imageinfo"):
                if str(info.get("mime", "")) not in ("image/jpeg", "image/png", "image/webp"):
                    continue
                claims.append(
                    Claim(
                        url=str(info.get("descriptionurl", "")),
                        title=re.sub(r"^File:|\.\w+$", "", str(page.get("title", ""))),
                        published=read_instant(str(info.get("timestamp", "")).replace("Z", "+00:00")),
                        image_url=str(info.get("thumburl") or info.get("url") or ""),
                    )
                )
        return [claim for claim in claims if claim.image_url]

    async def _ask(self, host: str, params: Mapping[str, str | int]) -> dict[str, Any]:
        return await self._api.get(f"{host}/w/api.php", {**params, "format": "json", "formatversion": 2})


def paragraphs(html: str) -> str:
    """The running text of a page: its paragraphs and list items without notes and tables, one per line."""
    reader = _Paragraphs()
    reader.feed(html)
    reader.close()
    lines = (re.sub(r"\s+", " ", re.sub(r"\[\d+\]", "", line)).strip() for line in reader.lines)
    return "\n".join(line for line in lines if len(line) > 20)


class _Paragraphs(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._skipped = 0
        self._open = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag in _SKIP:
            self._skipped += 1
        elif tag in ("p", "li") and not self._skipped:
            self.lines.append("")
            self._open += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIP:
            self._skipped = max(0, self._skipped - 1)
        elif tag in ("p", "li") and not self._skipped:
            self._open = max(0, self._open - 1)

    def handle_data(self, data: str) -> None:
        if self._open and not self._skipped and self.lines:
            self.lines[-1] += data


def _before(until: datetime) -> datetime:
    """The last whole second before `until`, in UTC."""
    whole = until.astimezone(UTC).replace(microsecond=0)
    return whole - timedelta(seconds=1) if until.microsecond == 0 else whole


def _file_names(claims: Any) -> list[str]:
    names = []
    for claim in claims if isinstance(claims, list) else []:
        try:
            names.append(str(claim["mainsnak"]["datavalue"]["value"]))
        except (KeyError, TypeError):
            continue
    return names


def _rows(found: Any, key: str) -> list[dict[str, Any]]:
    listed = found.get(key) if isinstance(found, dict) else None
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []

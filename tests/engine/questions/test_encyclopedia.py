"""Encyclopedia entries through the real Wikimedia provider over loopback: one person, a list of several, none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.loopback import Reply, Request, Site

from engine.core.protocols import Fetched
from engine.questions.encyclopedia import AT_ONCE, Encyclopedia
from engine.web.search.wikimedia import Wikimedia

PAGES = {
    "Ilse Brandvik": "<p>Ilse Brandvik (born 1971) is a politician and the mayor of Northvale since 2019.</p>",
    "Tom Reed": "<p><b>Tom Reed</b> may refer to:</p><ul><li>Tom Reed (judge), born 1950 in Lowmoor</li></ul>",
    "Grete Holm": "<p>Grete Holm is a rescue ship of the coast guard, launched in the year 1988.</p>",
}


class NoPages:
    async def fetch(self, url: str, *, kind: str) -> Fetched:
        raise AssertionError(f"no page is read for this: {url}")


class Wiki:
    """The API of an encyclopedia with three pages; `most` is how many requests were ever under way."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.under_way = self.most = 0

    async def __call__(self, request: Request) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.01)
        self.under_way -= 1
        query = parse_qs(urlsplit(request.target).query)
        return Reply(json.dumps(self.answer(query)).encode(), headers={"Content-Type": "application/json"})

    def answer(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        if "srsearch" in query:
            found = [title for title in PAGES if query["srsearch"][0].split()[-1].casefold() in title.casefold()]
            return {"query": {"search": [{"title": title} for title in found]}}
        if query.get("prop") == ["revisions"]:
            self.titles.append(query["titles"][0])
            revision = {"revid": len(self.titles), "timestamp": "2026-01-01T00:00:00Z"}
            return {"query": {"pages": [{"title": self.titles[-1], "revisions": [revision]}]}}
        return {"parse": {"text": PAGES[self.titles[int(query["oldid"][0]) - 1]]}}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Ilse Brandvik", True),
        ("ilse  BRANDVIK", True),
        ("Olga Brandvik", False),
        ("Tom Reed", False),
        ("Grete Holm", False),
        ("Nobody Known", False),
    ],
)
async def test_an_entry_about_one_person_of_that_name(name: str, known: bool) -> None:
    async with Site({"/w/api.php": Wiki()}) as site:
        host = site.url("")
        search = Wikimedia(fetcher=NoPages(), agent="tests (a@b.example)", wikipedia=host, wikidata=host, commons=host)
        assert await Encyclopedia(search, sites=("127.0.0.1",)).knows(name) is known
        # the page itself lies at a host that is no encyclopedia's
        assert await Encyclopedia(search).knows(name) is False
        await search.close()


async def test_names_are_looked_up_a_few_at_a_time() -> None:
    wiki = Wiki()
    async with Site({"/w/api.php": wiki}) as site:
        host = site.url("")
        search = Wikimedia(fetcher=NoPages(), agent="tests (a@b.example)", wikipedia=host, wikidata=host, commons=host)
        encyclopedia = Encyclopedia(search, sites=("127.0.0.1",))
        found = await asyncio.gather(*(encyclopedia.knows("Ilse Brandvik") for _ in range(10)))
        await search.close()
    assert found == [True] * 10
    assert wiki.most == AT_ONCE

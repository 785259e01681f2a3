"""Persons whom the week's own news do not show to be public: looked up through a search service on loopback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from support.loopback import Reply, Request, Site
from support.week import WINDOW, Week

from engine.core.schema import Rejected
from engine.core.store import read_jsonl
from flows.sample.config import sample_overrides

ENTRY = """<html><head><title>{name} - Wikipedia</title></head><body><article><h1>{name}</h1>
<p>{name} (born 12 May 1961 in Northvale) is a politician who has sat in parliament for four terms and chairs the
committee on harbours, bridges and inland waterways.</p><p>{name} studied in Lowmoor, worked for a shipping line and
published two books on the history of the coast, the second of which was translated into three languages.</p>
</article></body></html>"""


def results(name: str) -> Reply:
    """What a SearXNG instance answers: an encyclopedia's page named like the query, after one of a shop."""
    found = [
        {"url": f"http://shop.example/{quote(name)}", "title": name, "content": "buy it"},
        {"url": f"http://en.wikipedia.org/wiki/{quote(name.replace(' ', '_'))}", "title": name, "content": "a person"},
    ]
    return Reply(json.dumps({"results": found}).encode(), headers={"Content-Type": "application/json"})


def entry(request: Request) -> Reply:
    name = unquote(request.target.rsplit("/", 1)[1]).replace("_", " ")
    return Reply(ENTRY.format(name=name).encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def private(home: Path) -> list[int]:
    """How many are lost as private persons, for each finished ask stage."""
    found = [list(read_jsonl(path, Rejected)) for path in home.glob("windows/*/ask/*/rejected.jsonl")]
    return [sum(item.code.value == "private_person" for item in items) for items in found]


async def test_an_entry_makes_a_person_public(tmp_path: Path) -> None:
    """The same week without and with a search; a run of another key asks the record, not the service."""
    asked: list[str] = []
    site = Site()

    def search(request: Request) -> Reply:
        asked.append(request.target)
        (name,) = parse_qs(urlsplit(request.target).query)["q"]
        site.routes[f"/wiki/{quote(name.replace(' ', '_'))}"] = entry
        return results(name)

    site.routes["/search"] = search
    async with site:
        with Week(tmp_path, writer="template") as week:
            await asyncio.to_thread(week.nest, "ask", "--window", WINDOW)
            (before,) = private(week.home)
            assert before > 0
            told = sample_overrides(week.publishers.port)["collect"]
            hosts = {"en.wikipedia.org": site.netloc, "shop.example": site.netloc}
            settings = {
                **week.settings,
                "ask.encyclopedia": ["searxng"],
                "rose.searxng_url": site.url(""),
                "collect.resolve": {**told["resolve"], **hosts},
                "collect.allow_hosts": [*told["allow_hosts"], *hosts],
            }
            week.write_config(settings)
            await asyncio.to_thread(week.nest, "ask", "--window", WINDOW)
            assert sorted(private(week.home)) == [0, before]
            assert len(asked) == len(set(asked)) >= 1
            count = len(asked)
            week.write_config({**settings, "ask.max_questions_per_image": 3})
            await asyncio.to_thread(week.nest, "ask", "--window", WINDOW)
            assert len(asked) == count

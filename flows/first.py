"""`nest init`: the first configuration, with sources that are asked before they are written down."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.core.errors import ConfigError

if TYPE_CHECKING:
    from engine.core.config import Config, SourceSection
    from flows.stages.sources import SourceState

#: Types that an address is tried as, in order.
TYPES = ("feed", "sitemap")
#: Lines of the starter file, by how they begin, and what stands there for a trial without a GPU.
PORTABLE = (
    ('detector = "groundingdino"', 'detector = "portable"             # finds photographed people by their faces'),
    ('mask_model = "sam"', 'mask_model = "portable"'),
    ("segmenters = [", 'segmenters = ["portable"]'),
    ("anchors = [", 'anchors = ["portable"]'),
)
#: Seconds that one source may take to answer here: nobody waits long for a first look.
PATIENCE_S = 15.0


def starter_text() -> str:
    """The commented file with the starter sources."""
    return (Path(__file__).parent / "commands" / "starter.toml").read_text(encoding="utf-8")


def with_sources(text: str, rows: Sequence[SourceSection]) -> str:
    """The starter file with these sources in place of its own."""
    head, rest = text.split("[[source]]", 1)
    _, tail = rest.split("\n[collect]", 1)
    told = "\n".join(
        f"[[source]]\nname = {json.dumps(row.name)}\ntype = {json.dumps(row.type)}\nurl = {json.dumps(row.url)}\n"
        for row in rows
    )
    return f"{head}{told}\n[collect]{tail}"


def with_hosts(text: str, hosts: Sequence[str]) -> str:
    """The starter file with hosts that may be fetched although their address is private."""
    if not hosts:
        return text
    told = f"allow_hosts = {json.dumps(list(hosts))}   # may be fetched although their addresses are private\n"
    return text.replace("[collect]\n", f"[collect]\n{told}", 1)


def with_portable(text: str) -> str:
    """The starter file with the models that need neither a GPU nor weights."""
    for old, new in PORTABLE:
        line = re.search(rf"^{re.escape(old)}.*$", text, re.MULTILINE)
        assert line is not None, old
        text = text.replace(line[0], new, 1)
    return text


def find_sources(urls: Sequence[str], config: Config) -> tuple[list[SourceSection], list[SourceState]]:
    """Ask each address as a feed and as a sitemap; returns rows for those that answer, and what each showed.

    Raises `ConfigError` for something that is no address.
    """
    from engine.core.config import SourceSection

    for url in urls:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise ConfigError(
                f"'{url}' is not the address of a feed or a news sitemap: it begins with https:// or http://"
            )
    names = _names(urls)
    tried = [
        SourceSection(name=f"{name}/{kind}", type=kind, url=url)
        for name, url in zip(names, urls, strict=True)
        for kind in TYPES
    ]
    by_name = {state.name: state for state in ask(tried, config)}
    rows, states = [], []
    for name, url in zip(names, urls, strict=True):
        found = [(kind, by_name[f"{name}/{kind}"]) for kind in TYPES]
        # the one that shows most; a feed where both show nothing
        kind, state = max(found, key=lambda pair: (pair[1].state != "bad", pair[1].items, pair[0] == "feed"))
        states.append(_renamed(state, name))
        if state.state != "bad":
            rows.append(SourceSection(name=name, type=kind, url=url))
    return rows, states


def ask(rows: Sequence[SourceSection], config: Config) -> list[SourceState]:
    """What each source shows now, asked once and with little patience; nothing is kept."""
    from flows.stages.sources import check_sources

    collect = config.collect.model_copy(update={"retries": 0, "timeout_s": PATIENCE_S})
    with tempfile.TemporaryDirectory(prefix="nest-init-") as home:
        update = {"home": Path(home), "collect": collect, "source": tuple(rows)}
        return asyncio.run(check_sources(config.model_copy(update=update)))


def _names(urls: Sequence[str]) -> list[str]:
    """A short unique name per address, from its host."""
    found: list[str] = []
    for url in urls:
        host = re.sub(r"^(www|feeds?|rss|news)\.", "", (urlsplit(url).hostname or "").lower())
        # an address in numbers has no ending to be left out
        short = host if host.rpartition(".")[2].isdecimal() else host.rsplit(".", 1)[0]
        name = re.sub(r"[^a-z0-9-]+", "-", short).strip("-") or "source"
        number = 2
        unique = name
        while unique in found:
            unique, number = f"{name}-{number}", number + 1
        found.append(unique)
    return found


def _renamed(state: SourceState, name: str) -> SourceState:
    from dataclasses import replace

    return replace(state, name=name)


def table(states: Sequence[SourceState]) -> list[list[str]]:
    """What the sources show, as rows for the terminal."""
    rows: list[list[Any]] = [["source", "state", "items", "a day", "back to", "pictures", "captions", ""]]
    for s in states:
        shares = [f"{100 * s.pictured:.0f} %", f"{100 * s.captioned:.0f} %"] if s.items else ["", ""]
        rows.append([s.name, s.state, str(s.items), f"{s.per_day}", s.oldest, *shares, s.detail[:60]])
    return rows

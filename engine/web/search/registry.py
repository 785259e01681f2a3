"""Search providers by name, in the order the config gives them, each recorded and all behind one `Search`.

The local index is given ready; the others are made here from keys that are handed in as values. Nothing asks a service
when it is made.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

from engine.core.config import RoseSection
from engine.core.errors import ConfigError
from engine.core.protocols import Fetcher, ImageHit, Meter, Search, TextHit
from engine.web.search.engines import Brave, GoogleSearch, SearxNg
from engine.web.search.pages import PageReader
from engine.web.search.record import RecordedEntities, RecordedSearch
from engine.web.search.vision import GoogleVision, ImageEntities
from engine.web.search.wikimedia import Wikimedia
from engine.web.urls import url_key

#: Provider -> what it needs, in words.
PROVIDERS: Mapping[str, str] = {
    "local": "nothing: the window's own articles and the reference pictures",
    "searxng": "[rose] searxng_url",
    "brave": "BRAVE_API_KEY",
    "google": "GOOGLE_API_KEY and [rose] google_engine",
    "wikipedia": "nothing but an agent string with a contact",
}
BRAVE_KEY, GOOGLE_KEY = "BRAVE_API_KEY", "GOOGLE_API_KEY"
#: The variables of the environment that providers read their keys from.
KEYS = (BRAVE_KEY, GOOGLE_KEY)


#: A service's name and kind to what pays for its calls.
MeterOf = Callable[[str, Literal["search", "vision"]], Meter]
Paid = TypeVar("Paid", Brave, GoogleSearch)


def known_provider(name: str) -> str:
    """The name again. Raises `ConfigError` with the nearest one for a search provider that there is not."""
    if name not in PROVIDERS:
        near = difflib.get_close_matches(name, PROVIDERS, n=1)
        hint = f", did you mean '{near[0]}'?" if near else f"; known are {', '.join(PROVIDERS)}"
        raise ConfigError(f"there is no search provider '{name}'{hint}")
    return name


def require(name: str, section: RoseSection, secrets: Mapping[str, str]) -> None:
    """Raises `ConfigError` where a provider is unknown, or lacks its key, its address or its engine's id."""
    known_provider(name)
    if name == "searxng" and not section.searxng_url:
        raise ConfigError("the search provider 'searxng' needs its address: set [rose] searxng_url")
    if name == "google" and not section.google_engine:
        raise ConfigError("the search provider 'google' needs a search engine's id: set [rose] google_engine")
    if name in ("brave", "google"):
        _secret(secrets, BRAVE_KEY if name == "brave" else GOOGLE_KEY, name)


class _Closing(Protocol):
    async def close(self) -> None: ...


class Combined:
    """Several providers as one: each is asked in turn until there are enough hits; a page or picture counts once."""

    def __init__(self, providers: Sequence[Search]) -> None:
        self.providers = tuple(providers)
        self.name = "+".join(provider.name for provider in self.providers)

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        hits: dict[str, TextHit] = {}
        for provider in self.providers:
            if len(hits) >= limit:
                break
            for hit in await provider.text(query, limit=limit, until=until, blocked=blocked):
                hits.setdefault(url_key(hit.url), hit)
        return list(hits.values())[:limit]

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        hits: dict[str, ImageHit] = {}
        for provider in self.providers:
            if len(hits) >= limit:
                break
            for hit in await provider.images(query, limit=limit, until=until, blocked=blocked):
                hits.setdefault(url_key(hit.url), hit)
        return list(hits.values())[:limit]


class SearchSet:
    """What a run searches with; an async context manager that closes the services' connections.

    `search` is None where the config names no provider that is there; `entities` where no web detection is wanted.
    """

    def __init__(
        self,
        section: RoseSection,
        *,
        local: Search | None,
        secrets: Mapping[str, str],
        cache: Path,
        fetcher: Fetcher | None = None,
        read: PageReader | None = None,
        agent: str = "",
        offline: bool = False,
        meter: MeterOf | None = None,
    ) -> None:
        """Raises `ConfigError` for an unknown provider or a missing key. `offline` needs neither keys nor a fetcher:
        what was recorded under `cache` is all there is. `meter` pays for the calls of services that take money."""
        self._meter = meter
        self._stack = AsyncExitStack()
        self._open: list[_Closing] = []
        found: list[Search] = []
        for name in section.search:
            known_provider(name)
            if name == "local":
                # it is a finished file already: recording it would only double it
                found += [local] if local is not None else []
                continue
            inner = None if offline else self._make(name, section, secrets, fetcher, read, agent)
            found.append(RecordedSearch(inner, cache, name=name, offline=offline))
        self.search: Search | None = None
        if found:
            self.search = found[0] if len(found) == 1 else Combined(found)
        self.entities: ImageEntities | None = None
        if section.image_entities == "google-vision":
            vision = None
            if not offline:
                vision = GoogleVision(_secret(secrets, GOOGLE_KEY, "google-vision"))
                if meter is not None:
                    vision.metered(meter("google-vision", "vision"))
                self._open.append(vision)
            self.entities = RecordedEntities(vision, cache, name="google-vision", offline=offline)

    def _make(
        self,
        name: str,
        section: RoseSection,
        secrets: Mapping[str, str],
        fetcher: Fetcher | None,
        read: PageReader | None,
        agent: str,
    ) -> Search:
        if fetcher is None or read is None:
            raise ConfigError(f"the search provider '{name}' reads pages and this run has no client for them")
        require(name, section, secrets)
        made: SearxNg | Brave | GoogleSearch | Wikimedia
        if name == "searxng":
            made = SearxNg(section.searxng_url, fetcher=fetcher, read=read)
        elif name == "brave":
            made = self._metered(Brave(secrets[BRAVE_KEY], fetcher=fetcher, read=read))
        elif name == "google":
            google = GoogleSearch(secrets[GOOGLE_KEY], section.google_engine, fetcher=fetcher, read=read)
            made = self._metered(google)
        else:
            made = Wikimedia(fetcher=fetcher, agent=agent)
        self._open.append(made)
        return made

    def _metered(self, made: Paid) -> Paid:
        if self._meter is not None:
            made.metered(self._meter(made.name, "search"))
        return made

    async def __aenter__(self) -> Self:
        for service in self._open:
            self._stack.push_async_callback(service.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()


def _secret(secrets: Mapping[str, str], name: str, provider: str) -> str:
    value = secrets.get(name, "")
    if not value:
        raise ConfigError(f"{name} is not set: the search provider '{provider}' needs it")
    return value

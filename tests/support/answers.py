"""Sources without a network: a fetcher that answers from a function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.core.config import CollectSection, SourceSection
from engine.core.protocols import Fetched
from engine.core.schema import Code, Link, Rejected
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.deps import NewsDeps
from engine.news.sources import source_type
from engine.web.errors import FetchError

WINDOW = parse_window("2026-03-02..2026-03-08")
CONFIG = CollectSection()


class Answers:
    """A fetcher that answers from a function and keeps what was asked."""

    def __init__(self, answer: Callable[[str], bytes | Code]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def fetch(self, url: str, *, kind: str) -> Fetched:
        self.asked.append(url)
        found = self.answer(url)
        if isinstance(found, Code):
            raise FetchError(found, "as told")
        return Fetched(url, 200, {}, found)


def deps(answer: Callable[[str], bytes | Code], blobs: Path = Path("unused")) -> tuple[NewsDeps, Answers]:
    fetcher = Answers(answer)
    return NewsDeps(fetcher=fetcher, blobs=BlobStore(blobs)), fetcher  # type: ignore[arg-type]


async def links_of(
    row: SourceSection, answer: Callable[[str], bytes | Code], blobs: Path = Path("unused")
) -> list[Link | Rejected]:
    return await source_type(row.type).links(WINDOW, row, CONFIG, deps=deps(answer, blobs)[0])

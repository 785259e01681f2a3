"""The outside world of the collect stage, handed in by flows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.core.protocols import Blobs, Fetcher
from engine.core.schema import Link, Window
from engine.news.readers import Readers


class Memory(Protocol):
    """What a harvest remembered (see `harvest`)."""

    def links(self, window: Window, sources: Iterable[str]) -> list[Link]: ...


@runtime_checkable
class Streamer(Protocol):
    """A fetcher that can also hand on a body in parts, for archives larger than memory. Raises `FetchError`."""

    def stream(self, url: str) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class NewsDeps:
    """`fetcher` gets everything, `blobs` keeps pages and images. `memory` is read by `find` if there is one.

    `known_photos` are perceptual hashes (16 hex digits) of photos in earlier snapshots: an image like one of them is
    archive material. `readers` read pages and pictures; without them threads of this process do.
    """

    fetcher: Fetcher
    blobs: Blobs
    memory: Memory | None = None
    known_photos: tuple[str, ...] = ()
    readers: Readers | None = None

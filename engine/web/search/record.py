"""Every answer of a search is written down, so that an evaluation can be run again with the network off.

A recording stands at the seam itself, around any provider: the question with its limit, cut-off and blocked pages is
the key, the hits are the value, pictures lie beside it without loss. What is recorded is never asked again, which also
makes a killed run go on where it was. Errors are not recorded. No key of a service is in here: providers put those in
later.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from engine.core.errors import TerminalError, TransientError
from engine.core.geometry import Image
from engine.core.images import encode_png, open_image
from engine.core.protocols import ImageHit, Search, TextHit
from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes, write_atomic
from engine.web.search.vision import ImageEntities, ImageEntity

T = TypeVar("T")
_VERSION = 1


class Records:
    """Recorded answers in a folder: `<2 hex>/<sha256>.json`, pictures as `<2 hex>/<sha256>.png`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str, suffix: str) -> Path:
        return self.folder / key[:2] / f"{key}.{suffix}"

    def read(self, key: str) -> Any:
        """The recorded value, None if there is none. Raises `TerminalError` for a damaged record."""
        path = self.path(key, "json")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TerminalError(f"{path} cannot be read: {error}") from error
        try:
            return json.loads(text)["value"]
        except (ValueError, KeyError, TypeError) as error:
            raise TerminalError(f"{path} is damaged ({error}): remove it and run again") from error

    def write(self, key: str, asked: dict[str, Any], value: Any) -> None:
        write_atomic(self.path(key, "json"), canonical_json({"asked": asked, "value": value}).encode())

    def put_image(self, image: Image) -> str:
        data = encode_png(image)
        name = sha256_bytes(data)
        if not self.path(name, "png").is_file():
            write_atomic(self.path(name, "png"), data)
        return name

    def get_image(self, name: str) -> Image:
        path = self.path(name, "png")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TerminalError(f"the recorded picture {path} is gone: run again with the network on") from error
        if sha256_bytes(data) != name:
            raise TerminalError(f"the recorded picture {path} is damaged: remove it and run again")
        return open_image(data).pixels


class _Recorder:
    def __init__(self, records: Records, *, name: str, offline: bool) -> None:
        self.records = records
        self.name = name
        self.offline = offline
        self._flights: dict[str, asyncio.Task[Any]] = {}

    async def once(
        self,
        asked: dict[str, Any],
        call: Callable[[], Any],
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
    ) -> Any:
        """The recorded answer, or the answer of `call`, recorded. The same question twice at a time is asked once."""
        full = {"version": _VERSION, "provider": self.name, **asked}
        key = sha256_bytes(canonical_json(full).encode())
        # Several samples often ask the same. One task asks; the others wait for it, and go on if it is cancelled.
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(self._ask(key, full, call, pack))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return unpack(await asyncio.shield(flight))

    def _landed(self, key: str, flight: asyncio.Task[Any]) -> None:
        self._flights.pop(key, None)
        # nobody may be waiting any more; an error that is not looked at would be complained of at the end
        if not flight.cancelled():
            flight.exception()

    async def _ask(self, key: str, full: dict[str, Any], call: Callable[[], Any], pack: Callable[[Any], Any]) -> Any:
        kept = await asyncio.to_thread(self.records.read, key)
        if kept is not None:
            return kept
        if self.offline:
            raise TransientError(
                f"offline, and {self.name} was never asked {full.get('query', 'this')!r}: go online once"
            )
        value = await asyncio.to_thread(pack, await call())
        await asyncio.to_thread(self.records.write, key, full, value)
        return value


class RecordedSearch:
    """A `Search` whose answers are recorded; `inner` may be None when `offline`."""

    def __init__(self, inner: Search | None, folder: Path, *, name: str = "", offline: bool = False) -> None:
        self.name = name or (inner.name if inner is not None else "")
        self._inner = inner
        self._records = Records(folder)
        self._recorder = _Recorder(self._records, name=self.name, offline=offline or inner is None)

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        async def call() -> list[TextHit]:
            assert self._inner is not None
            return await self._inner.text(query, limit=limit, until=until, blocked=blocked)

        found: list[TextHit] = await self._recorder.once(
            _asked("text", query, limit, until, blocked), call, lambda hits: [_pack_text(hit) for hit in hits], _texts
        )
        return found

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        async def call() -> list[ImageHit]:
            assert self._inner is not None
            return await self._inner.images(query, limit=limit, until=until, blocked=blocked)

        found: list[ImageHit] = await self._recorder.once(
            _asked("images", query, limit, until, blocked),
            call,
            lambda hits: [_pack_image(hit, self._records) for hit in hits],
            lambda kept: [_image(row, self._records) for row in kept],
        )
        return found


class RecordedEntities:
    """`ImageEntities` whose answers are recorded by the image's pixels."""

    def __init__(self, inner: ImageEntities | None, folder: Path, *, name: str = "", offline: bool = False) -> None:
        self.name = name or (inner.name if inner is not None else "")
        self._inner = inner
        self._recorder = _Recorder(Records(folder), name=self.name, offline=offline or inner is None)

    async def entities(self, image: Image) -> list[ImageEntity]:
        async def call() -> Sequence[ImageEntity]:
            assert self._inner is not None
            return await self._inner.entities(image)

        digest = sha256_bytes(str(image.shape).encode() + image.tobytes())
        found: list[ImageEntity] = await self._recorder.once(
            {"kind": "entities", "image": digest},
            call,
            lambda named: [{"name": entity.name, "score": entity.score} for entity in named],
            lambda kept: [ImageEntity(name=row["name"], score=row["score"]) for row in kept],
        )
        return found


def _asked(kind: str, query: str, limit: int, until: datetime | None, blocked: Sequence[str]) -> dict[str, Any]:
    return {
        "kind": kind,
        "query": query,
        "limit": limit,
        "until": _stamp(until),
        "blocked": sorted(set(blocked)),
    }


def _stamp(instant: datetime | None) -> str | None:
    return instant.astimezone(UTC).isoformat() if instant is not None else None


def _when(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _pack_text(hit: TextHit) -> dict[str, Any]:
    return {
        "url": hit.url,
        "title": hit.title,
        "text": hit.text,
        "published": _stamp(hit.published),
        "score": float(hit.score),
    }


def _texts(kept: Any) -> list[TextHit]:
    return [TextHit(**{**row, "published": _when(row["published"])}) for row in kept]


def _pack_image(hit: ImageHit, records: Records) -> dict[str, Any]:
    return {
        "url": hit.url,
        "caption": hit.caption,
        "image": records.put_image(hit.image),
        "published": _stamp(hit.published),
        "score": float(hit.score),
    }


def _image(row: dict[str, Any], records: Records) -> ImageHit:
    return ImageHit(**{**row, "image": records.get_image(row["image"]), "published": _when(row["published"])})

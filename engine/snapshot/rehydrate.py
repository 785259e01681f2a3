"""From a snapshot of addresses to one with pictures: fetching, checking, and saying what has vanished.

A snapshot published with `publish = "urls"` holds no pixels. Each picture is fetched from its address and must have
the sha256 it had; a picture that has the same look but other bytes (another size or encoding) is reported and left
out, unless asked for: a mask is true only for the very picture. The result is an ordinary snapshot folder, with the
rows that could be had.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from engine.core.config import SnapshotSection
from engine.core.errors import ConfigError
from engine.core.images import ImageError
from engine.core.masks import decode_rle
from engine.core.protocols import Fetcher
from engine.core.schema import FunnelStep, Rle, SnapshotManifest
from engine.core.store import committed_directory
from engine.snapshot.assemble import assemble, edition_of
from engine.snapshot.manifest import read_manifest
from engine.snapshot.pictures import Picture, again
from engine.snapshot.revise import read_rows, size_of
from engine.snapshot.rows import Row, file_value
from engine.web.errors import FetchError

Outcome = Literal["same", "vanished", "changed", "broken"]
#: Addresses asked at a time; the fetcher paces per host by itself.
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Found:
    """One picture: its row, address, and what came of it, with a reason in words if it is not the same."""

    row: str
    url: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RehydrateReport:
    """The manifest of the new folder and what came of every picture."""

    manifest: SnapshotManifest
    pictures: tuple[Found, ...]
    rows_found: int

    def counts(self) -> dict[str, int]:
        """How many pictures came to what."""
        return dict(sorted(Counter(item.outcome for item in self.pictures).items()))


async def rehydrate(folder: Path, out: Path, *, fetcher: Fetcher) -> RehydrateReport:
    """Write `out` with the pictures of a snapshot of addresses.

    Rows of which a picture is gone or changed are left out and counted in the funnel. Raises `ConfigError` if the
    folder has its pictures already or `out` exists, `TransientError` if the network as a whole is at fault.
    """
    manifest = _checked(folder, out)
    config = SnapshotSection.model_validate(manifest.config).model_copy(update={"publish": "bytes"})
    told: list[Found] = []
    lost: Counter[str] = Counter()

    def rows() -> Iterator[Row]:
        for row, bodies in batches:
            picture = _row(row, bodies, config, told)
            if picture is None:
                lost["fetch_gone"] += 1
            else:
                yield picture

    def funnel(kept: int) -> tuple[FunnelStep, ...]:
        step = FunnelStep(stage="rehydrate", found=kept + lost.total(), kept=kept, rejected=dict(lost))
        return (*manifest.funnel, step)

    with committed_directory(out) as temporary:
        # bodies are kept on disk meanwhile: a snapshot's pictures need not fit into memory
        place = temporary.with_name(f"{temporary.name}.bodies")
        place.mkdir()
        try:
            await _fetch_all(folder, place, fetcher)
            batches = _with_bodies(folder, place)
            made = assemble(temporary, rows(), edition_of(manifest, config=config, funnel=funnel))
        finally:
            for path in place.iterdir():
                path.unlink()
            place.rmdir()
    return RehydrateReport(made, tuple(told), manifest.rows)


def _checked(folder: Path, out: Path) -> SnapshotManifest:
    manifest = read_manifest(folder)
    if manifest.publish != "urls":
        raise ConfigError(f"{folder} has its pictures already: only a snapshot published as 'urls' is rehydrated")
    if out.exists():
        raise ConfigError(f"{out} exists: choose another place or remove it")
    return manifest


async def _fetch_all(folder: Path, place: Path, fetcher: Fetcher) -> None:
    """Fetch every address once; the body or the reason goes to a file named by the address's digest."""
    urls = sorted({url for row in read_rows(folder) for url in row.provenance["image_urls"]})
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> None:
        async with turn:
            name = place / _name(url)
            try:
                fetched = await fetcher.fetch(url, kind="image")
            except FetchError as error:
                name.with_suffix(".reason").write_text(f"{error}", encoding="utf-8")
                return
            name.write_bytes(fetched.body)

    await asyncio.gather(*(one(url) for url in urls))


def _name(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def _with_bodies(folder: Path, place: Path) -> Iterator[tuple[Row, list[bytes | str]]]:
    """Rows with the body of each picture, or the reason why there is none."""
    for row in read_rows(folder):
        bodies: list[bytes | str] = []
        for url in row.provenance["image_urls"]:
            path = place / _name(url)
            bodies.append(path.read_bytes() if path.is_file() else path.with_suffix(".reason").read_text("utf-8"))
        yield row, bodies


def _row(row: Row, bodies: Sequence[bytes | str], config: SnapshotSection, told: list[Found]) -> Row | None:
    """The row with its pictures, None if one of them is not what it was."""
    origin = row.provenance
    good = True
    for url, digest, body in zip(origin["image_urls"], origin["image_sha256"], bodies, strict=True):
        if isinstance(body, str):
            told.append(Found(row.id, url, "vanished", body))
        elif hashlib.sha256(body).hexdigest() != digest:
            told.append(Found(row.id, url, "changed", "other bytes than when the mask was made"))
        else:
            told.append(Found(row.id, url, "same"))
            continue
        good = False
    if not good:
        return None
    pictures = _pictures(row, [body for body in bodies if isinstance(body, bytes)], config.jpeg_quality, told)
    if pictures is None:
        return None
    default: dict[str, Any] = {
        **{name: row.default[name] for name in ("id", "question", "answer")},
        "images": [file_value(row.id, n, "jpg", picture.jpeg) for n, picture in enumerate(pictures)],
        "annotations": [file_value(row.id, n, "png", picture.png) for n, picture in enumerate(pictures)],
    }
    return replace(row, default=default, size_bytes=size_of(default))


def _pictures(row: Row, bodies: Sequence[bytes], quality: int, told: list[Found]) -> tuple[Picture, ...] | None:
    """The published pictures: the same rule that the mask was made under must give the same picture."""
    origin = row.provenance
    sizes = [(mask["size"][0], mask["size"][1]) for mask in row.default["masks"]]
    try:
        made = [
            again(body, decode_rle(Rle(size=size, counts=mask["counts"])), step=origin["shrunk"], quality=quality)
            for body, size, mask in zip(bodies, sizes, row.default["masks"], strict=True)
        ]
    except (ImageError, ValueError) as error:
        told.append(Found(row.id, origin["image_urls"][0], "broken", str(error)))
        return None
    digests = [hashlib.sha256(picture.jpeg).hexdigest() for picture in made]
    for url, digest, wanted in zip(origin["image_urls"], digests, origin["image_published_sha256"], strict=True):
        if digest != wanted:
            told.append(Found(row.id, url, "broken", "encoded anew it is not the picture that was published"))
            return None
    return tuple(made)

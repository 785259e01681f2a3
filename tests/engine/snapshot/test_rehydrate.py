"""Snapshots of addresses: no pixel in them, the same pictures after rehydration, and what has vanished is said."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest
from support import snapshots

from engine.core.errors import ConfigError, TransientError
from engine.core.protocols import Fetched
from engine.core.schema import Code, Sample
from engine.core.store import BlobStore
from engine.snapshot.build import build
from engine.snapshot.manifest import read_manifest
from engine.snapshot.rehydrate import rehydrate
from engine.snapshot.revise import read_rows
from engine.snapshot.verify import verify
from engine.web.errors import FetchError

URLS = snapshots.CONFIG.model_copy(update={"publish": "urls"})


class Shelf:
    """A fetcher over pictures by address; what is not there is gone."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies
        self.asked: list[str] = []

    async def fetch(self, url: str, *, kind: str) -> Fetched:
        self.asked.append(url)
        assert kind == "image"
        if url not in self.bodies:
            raise FetchError(Code.FETCH_GONE, "status 410")
        return Fetched(url, 200, {}, self.bodies[url])


def both(tmp_path: Path, found: list[Sample], blobs: BlobStore, **limits: int) -> tuple[Path, Path]:
    """The same samples published with pictures and as addresses."""
    folders = []
    for name, config in (("bytes", snapshots.CONFIG), ("urls", URLS)):
        folder = tmp_path / name
        folder.mkdir()
        build(
            folder,
            found,
            window=snapshots.WINDOW,
            config=config.model_copy(update=limits),
            hub_repo="news/{name}",
            blobs=blobs,
            key="k",
        )
        folders.append(folder)
    return folders[0], folders[1]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def bodies(found: list[Sample], blobs: BlobStore) -> dict[str, bytes]:
    return {image.url: blobs.get(image.sha256) for sample in found for image in sample.images}


async def test_rehydrated_is_what_was_never_taken_apart(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(4, blobs, images_per_article=2)
    whole, urls = both(tmp_path, found, blobs)
    assert verify(urls) == []
    data = datasets.load_dataset(str(urls), split="train", cache_dir=str(tmp_path / "cache"))
    assert data.column_names == ["id", "question", "answer", "image_urls", "image_sha256", "masks"]
    pixels = bodies(found, blobs)
    for path in urls.rglob("*"):
        assert not path.is_file() or all(body[-200:-50] not in path.read_bytes() for body in pixels.values())
    shelf = Shelf(pixels)
    out = tmp_path / "again"
    report = await rehydrate(urls, out, fetcher=shelf)
    assert report.counts() == {"same": 8}
    assert sorted(shelf.asked) == sorted(pixels)
    assert verify(out) == []
    assert [row.default for row in read_rows(out)] == [row.default for row in read_rows(whole)]
    assert {"again", "blobs", "bytes", "urls"} <= names(tmp_path)
    assert not any(name.startswith(".tmp") for name in names(tmp_path))


async def test_what_has_vanished_or_changed_is_said(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(5, blobs)
    _, urls = both(tmp_path, found, blobs)
    pixels = bodies(found, blobs)
    gone, changed = found[0], found[1]
    del pixels[gone.images[0].url]
    pixels[changed.images[0].url] = snapshots.jpeg(snapshots.picture(999))
    out = tmp_path / "again"
    report = await rehydrate(urls, out, fetcher=Shelf(pixels))
    assert report.counts() == {"changed": 1, "same": 3, "vanished": 1}
    told = {item.row: item for item in report.pictures if item.outcome != "same"}
    assert told[gone.id].detail == "fetch_gone: status 410"
    assert (report.rows_found, report.manifest.rows) == (5, 3)
    assert report.manifest.funnel[-1].rejected == {"fetch_gone": 2}
    assert verify(out) == []
    assert not {gone.id, changed.id} & {row.id for row in read_rows(out)}


async def test_shrunk_rows_come_back_shrunk(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(2, blobs, width=640, height=480, noise=True)
    whole, urls = both(tmp_path, found, blobs, max_row_bytes=60_000)
    assert next(read_rows(urls)).provenance["shrunk"].startswith("scale")
    out = tmp_path / "again"
    report = await rehydrate(urls, out, fetcher=Shelf(bodies(found, blobs)))
    assert report.counts() == {"same": 2}
    assert [row.default for row in read_rows(out)] == [row.default for row in read_rows(whole)]


async def test_what_is_not_rehydrated(tmp_path: Path) -> None:
    folder = tmp_path / "bytes"
    snapshots.snapshot(folder, 1)
    with pytest.raises(ConfigError, match="already"):
        await rehydrate(folder, tmp_path / "out", fetcher=Shelf({}))
    urls = tmp_path / "urls"
    snapshots.snapshot(urls, 1, config=URLS)
    with pytest.raises(ConfigError, match="exists"):
        await rehydrate(urls, folder, fetcher=Shelf({}))

    class Down(Shelf):
        async def fetch(self, url: str, *, kind: str) -> Fetched:
            raise TransientError("no network")

    with pytest.raises(TransientError):
        await rehydrate(urls, tmp_path / "out", fetcher=Down({}))
    assert names(tmp_path) == {"blobs", "bytes", "urls"}
    assert read_manifest(urls).publish == "urls"

"""The published folder: columns, bytes, empty weeks, provenance, and that the same rows give the same bytes."""

from __future__ import annotations

import io
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image as PilImage
from support import snapshots

from engine.core.errors import TerminalError
from engine.core.masks import encode_rle
from engine.core.schema import Code, FunnelStep, Rejected
from engine.core.store import BlobStore, sha256_file
from engine.snapshot.build import build
from engine.snapshot.card import check_card
from engine.snapshot.manifest import read_manifest
from engine.snapshot.verify import verify


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 5, images_per_article=2)
    return found


def load(folder: Path, tmp_path: Path, name: str | None = None, split: str = "train") -> datasets.Dataset:
    return datasets.load_dataset(str(folder), name, split=split, cache_dir=str(tmp_path / "cache"))


def test_default_config_has_the_published_columns(folder: Path, tmp_path: Path) -> None:
    data = load(folder, tmp_path)
    text = datasets.Value("string")
    pictures = datasets.List(datasets.Image())
    assert data.features == {
        "id": text,
        "question": text,
        "answer": text,
        "images": pictures,
        "annotations": pictures,
    }
    assert data.column_names == ["id", "question", "answer", "images", "annotations"]
    assert data["id"] == sorted(data["id"])
    assert len(data) == 5
    for row in data:
        assert len(row["images"]) == len(row["annotations"]) == 2
        for image, mask in zip(row["images"], row["annotations"], strict=True):
            assert image.format == "JPEG"
            assert image.mode == "RGB"
            assert mask.format == "PNG"
            assert mask.mode == "L"
            assert mask.size == image.size
            assert set(np.unique(np.asarray(mask))) == {0, 255}


def test_benchmark_is_the_same_rows_as_split_test(folder: Path, tmp_path: Path) -> None:
    assert load(folder, tmp_path, "benchmark", "test")["id"] == load(folder, tmp_path)["id"]


def test_provenance_joins_one_to_one(folder: Path, tmp_path: Path) -> None:
    rows, origin = load(folder, tmp_path), load(folder, tmp_path, "provenance")
    assert origin["id"] == rows["id"]
    first = origin[0]
    assert len(first["image_urls"]) == len(rows[0]["images"])
    for name in ("image_captions", "image_credits", "image_rights", "image_phashes", "image_sha256", "boxes", "masks"):
        assert len(first[name]) == len(first["image_urls"])
    assert first["publisher"] == "Herald"
    assert [witness["kind"] for witness in first["date_witnesses"]] == ["jsonld", "url"]
    assert first["novelty"][0]["label"] in ("novel", "emerging")
    assert first["bindings"][0]["evidence"][0]["kind"] == "count"
    assert first["models"][0]["weights_sha256"] == "ab" * 32


def test_paths_in_rows_are_base_names(folder: Path) -> None:
    for path in sorted((folder / "data").glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            for item in row["images"] + row["annotations"]:
                assert item["bytes"]
                assert "/" not in item["path"]


def test_an_empty_week_has_the_same_types(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    manifest = snapshots.snapshot(folder, 0)
    assert manifest.rows == 0
    # datasets 5.2 cannot make a map-style dataset of a split without rows; it streams one
    for name in ("default", "provenance"):
        data = datasets.load_dataset(str(folder), name, split="train", streaming=True)
        assert list(data) == []
        assert data.features["id"] == datasets.Value("string")
    default = datasets.load_dataset(str(folder), split="train", streaming=True)
    assert default.features["images"] == datasets.List(datasets.Image())
    check_card((folder / "README.md").read_text(encoding="utf-8"), 0)


def test_manifest_names_every_file_and_counts(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest.rows == 5
    assert manifest.images == 10
    assert manifest.splits == {"train": 5}
    listed = {item.path: item.sha256 for item in manifest.files}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == {*listed, "snapshot.json"}
    for name, digest in listed.items():
        assert sha256_file(folder / name) == digest
    assert manifest.funnel[-1] == FunnelStep(stage="snapshot", found=5, kept=5)
    assert {model.role for model in manifest.models} == {"detector", "question writer"}
    assert not manifest.portable


def test_lost_rows_are_counted(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(2, blobs)
    empty = found[0].annotation.images[0].model_copy(update={"rle": encode_rle(np.zeros((48, 64), dtype=bool))})
    broken = found[0].model_copy(update={"annotation": found[0].annotation.model_copy(update={"images": (empty,)})})
    folder = tmp_path / "out"
    folder.mkdir()
    manifest = build(
        folder,
        [found[1], broken],
        window=snapshots.WINDOW,
        config=snapshots.CONFIG,
        hub_repo="",
        blobs=blobs,
        key="k",
        funnel=[FunnelStep(stage="collect", found=9, kept=3, rejected={"no_date": 6})],
        rejected=[Rejected(item="x", stage="snapshot", code=Code.OPTED_OUT)],
    )
    assert manifest.rows == 1
    assert manifest.funnel[0].stage == "collect"
    assert manifest.funnel[1] == FunnelStep(
        stage="snapshot", found=3, kept=1, rejected={"opted_out": 1, "mask_empty": 1}
    )


def test_an_iterator_must_be_in_order(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(3, blobs)
    options = {"window": snapshots.WINDOW, "config": snapshots.CONFIG, "hub_repo": "", "blobs": blobs, "key": "k"}
    for name, order in (("reversed", found[::-1]), ("twice", [found[0], found[0]])):
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(TerminalError, match="ascending order"):
            build(folder, iter(order), **options)


def test_row_groups_and_shards_are_cut_by_real_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    config = snapshots.CONFIG.model_copy(update={"row_group_bytes": 120_000, "max_shard_bytes": 300_000})
    manifest = snapshots.snapshot(folder, 30, config=config, width=320, height=240, images_per_article=3)
    shards = sorted((folder / "data").glob("*.parquet"))
    assert len(shards) > 1
    assert [path.name for path in shards] == [f"train-{n:05d}-of-{len(shards):05d}.parquet" for n in range(len(shards))]
    rows = 0
    for path in shards:
        assert path.stat().st_size < 320_000
        metadata = pq.read_metadata(path)
        rows += metadata.num_rows
        for n in range(metadata.num_row_groups):
            group = metadata.row_group(n)
            assert group.total_byte_size < 130_000 or group.num_rows == 1
    assert rows == manifest.rows == 30


def test_same_rows_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    """Case 45: five orders, three hash seeds, two time zones, two locales."""
    script = Path(__file__).with_name("build_once.py")
    settings = [("0", "UTC", "C"), ("1", "Asia/Tokyo", "C.UTF-8"), ("2", "UTC", "C.UTF-8")]
    running = []
    for seed, zone, locale in settings:
        out = tmp_path / f"run{seed}" / "NEST"
        path = os.pathsep.join(sys.path)
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "PYTHONPATH": path}
        command = [sys.executable, str(script), str(out), seed]
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    found = []
    for process in running:
        told, wrong = process.communicate()
        assert process.returncode == 0, wrong
        found.append(json.loads(told))
    assert found[0] == found[1] == found[2]
    assert "snapshot.json" in found[0]["files"]
    assert found[0]["order"] == sorted(found[0]["order"])


def test_order_of_samples_does_not_show(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(6, blobs)
    digests = set()
    for n in range(3):
        shuffled = found[:]
        random.Random(n).shuffle(shuffled)
        folder = tmp_path / f"s{n}"
        folder.mkdir()
        build(
            folder,
            shuffled,
            window=snapshots.WINDOW,
            config=snapshots.CONFIG,
            hub_repo="",
            blobs=blobs,
            key="k",
            workers=n + 1,
        )
        digests.add(tuple(sha256_file(path) for path in sorted(folder.rglob("*")) if path.is_file()))
    assert len(digests) == 1


def test_overlap_with_earlier_snapshots(tmp_path: Path, folder: Path) -> None:
    later = tmp_path / "later"
    manifest = snapshots.snapshot(later, 3, seed=3, images_per_article=2, earlier=[folder])
    assert len(manifest.overlaps) == 1
    # articles 3 and 4 were in the earlier one with two pictures each
    assert manifest.overlaps[0].images == 4
    assert manifest.overlaps[0].articles == 2
    assert "Overlap with earlier snapshots" in (later / "README.md").read_text(encoding="utf-8")


def test_rows_over_the_limit_are_shrunk_with_their_masks(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, size=(480, 640, 3), dtype=np.uint8)
    found = snapshots.samples(1, blobs, width=640, height=480)[0]
    digest = blobs.put(snapshots.jpeg(noise, quality=95), "jpg")
    image = found.images[0].model_copy(update={"sha256": digest})
    sample = found.model_copy(update={"images": (image,)})
    folder = tmp_path / "out"
    folder.mkdir()
    config = snapshots.CONFIG.model_copy(update={"max_row_bytes": 60_000})
    manifest = build(folder, [sample], window=snapshots.WINDOW, config=config, hub_repo="", blobs=blobs, key="k")
    assert manifest.rows == 1
    row = pq.read_table(folder / "data").to_pylist()[0]
    picture = PilImage.open(io.BytesIO(row["images"][0]["bytes"]))
    mask = PilImage.open(io.BytesIO(row["annotations"][0]["bytes"]))
    assert picture.size == mask.size
    assert picture.size[0] < 640
    assert len(row["images"][0]["bytes"]) < 60_000
    origin = pq.read_table(folder / "provenance").to_pylist()[0]
    assert origin["shrunk"].startswith("scale 0.")
    assert origin["image_widths"] == [picture.size[0]]
    assert origin["masks"][0]["size"] == [picture.size[1], picture.size[0]]
    scale = float(origin["shrunk"].split()[1])
    whole = found.annotation.images[0].candidates[0]
    assert origin["boxes"][0][2] == pytest.approx(whole.x2 * scale, rel=0.01)


def test_building_and_checking_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError(f"a connection was opened: {args}")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    folder = tmp_path / snapshots.WINDOW.name
    snapshots.snapshot(folder, 2)
    assert verify(folder) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [snapshots.WINDOW.name, "blobs"]

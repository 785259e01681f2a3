"""Snapshots as benchmarks: our folder, the official layout, and files that are not what they seem."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.evaluation import WINDOW, png, write_snapshot

from engine.core.errors import ConfigError, TerminalError
from inference.benchmarks.nest import load
from inference.benchmarks.registry import open_benchmark


def test_our_folder_with_provenance(tmp_path: Path) -> None:
    masks = write_snapshot(tmp_path / WINDOW)
    found = load(tmp_path / WINDOW)
    assert (found.name, found.window, len(found)) == (WINDOW, "261109_261115", 6)
    samples = list(found)
    assert [sample.id for sample in samples] == sorted(masks)
    for sample in samples:
        assert np.array_equal(sample.masks()[0].mask, masks[sample.id])
        assert sample.images()[0].shape == (48, 64, 3)
        assert sample.cutoff == datetime(2026, 11, 16, tzinfo=UTC)
    first, second = samples[:2]
    assert first.aliases == ("N. 0",)
    assert first.blocked == ("https://news.example/0",)
    assert first.tags["domain"] == "Politics"
    assert first.tags["writer"] == "template"
    assert (first.tags["novelty:tiny-1"], second.tags["novelty:tiny-1"]) == ("novel", "emerging")
    assert first.image_keys == second.image_keys
    item = first.item()
    assert not hasattr(item, "answer")
    assert item.images[0].shape == (48, 64, 3)


def test_official_layout_has_five_columns_and_clusters_by_bytes(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "copy", provenance=False)
    found = load(tmp_path / "copy")
    samples = list(found.without_images())
    assert samples[0].image_keys == samples[1].image_keys != samples[2].image_keys
    assert samples[0].cutoff is None
    assert any("no provenance" in note for note in found.notes)


def test_samples_for_scoring_hold_no_images(tmp_path: Path) -> None:
    write_snapshot(tmp_path / WINDOW)
    sample = next(load(tmp_path / WINDOW).without_images())
    with pytest.raises(TerminalError, match="without images"):
        sample.images()


def test_digest_and_order_are_stable(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a" / WINDOW)
    write_snapshot(tmp_path / "b" / WINDOW)
    write_snapshot(tmp_path / "c" / WINDOW, rows=5)
    digests = [load(tmp_path / place / WINDOW).digest for place in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_views(tmp_path: Path) -> None:
    write_snapshot(tmp_path / WINDOW)
    found = load(tmp_path / WINDOW)
    assert [sample.id for sample in found.take(2)] == ["s000", "s001"]
    assert [sample.id for sample in found.only({"s004", "s001"})] == ["s001", "s004"]
    assert {sample.tags["domain"] for sample in found.where("domain", "Sports")} == {"Sports"}
    assert len(found.where("domain", "Sports")) == 3
    with pytest.raises(TerminalError, match="s999"):
        found.only({"s999"})


def test_a_part_is_data_of_its_own(tmp_path: Path) -> None:
    write_snapshot(tmp_path / WINDOW)
    found = load(tmp_path / WINDOW)
    parts = [found.take(2), found.take(3), found.only({"s001"}), found.only({"s002"}), found.where("domain", "Sports")]
    assert len({one.digest for one in [found, *parts]}) == len({one.name for one in [found, *parts]}) == 6
    assert all(one.name.startswith(f"{found.name}.") for one in parts)
    assert parts[0].digest == load(tmp_path / WINDOW).take(2).digest
    assert found.take(len(found)) is found


def test_null_mask_is_an_absent_entity(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "one", rows=2, provenance=False)
    file = tmp_path / "one" / "data" / "train-00000-of-00002.parquet"
    rows = pq.read_table(file).to_pylist()
    schema = pq.read_schema(file)
    rows[0]["images"] *= 2
    rows[0]["annotations"] = [*rows[0]["annotations"], None]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    sample = next(iter(load(file)))
    first, second = sample.masks()
    assert first.mask.any()
    assert second.mask.shape == (48, 64)
    assert not second.mask.any()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row.update(annotations=[{"bytes": None, "path": "/home/x/m.png"}]), "only the path"),
        (lambda row: row.update(annotations=[{"bytes": b"no image", "path": None}]), "no image can be decoded"),
        (lambda row: row.update(annotations=[]), "1 images and 0 annotations"),
        (lambda row: row.update(question=None), "question is None"),
        (
            lambda row: row.update(
                annotations=[{"bytes": png(np.full((48, 64, 3), (9, 200, 7), dtype=np.uint8)), "path": None}]
            ),
            "coloured",
        ),
    ],
)
def test_errors_name_file_row_and_reason(tmp_path: Path, change: object, said: str) -> None:
    write_snapshot(tmp_path / "bad", rows=2, provenance=False)
    file = tmp_path / "bad" / "data" / "train-00001-of-00002.parquet"
    schema = pq.read_schema(file)
    rows = pq.read_table(file).to_pylist()
    assert callable(change)
    change(rows[0])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    with pytest.raises(TerminalError) as caught:
        [sample.masks() for sample in load(tmp_path / "bad")]
    assert said in str(caught.value)
    assert "train-00001-of-00002.parquet, row 0" in str(caught.value)


def test_stale_and_missing_shards_are_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "stale")
    data = tmp_path / "stale" / "data"
    (data / "train-00000-of-00001.parquet").write_bytes((data / "train-00000-of-00002.parquet").read_bytes())
    with pytest.raises(TerminalError, match="generations"):
        load(tmp_path / "stale")
    (data / "train-00000-of-00001.parquet").unlink()
    (data / "train-00001-of-00002.parquet").unlink()
    with pytest.raises(TerminalError, match="1 of 2 shards"):
        load(tmp_path / "stale")


def test_same_id_twice_is_an_error(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "twice")
    data = tmp_path / "twice" / "data"
    (data / "train-00001-of-00002.parquet").write_bytes((data / "train-00000-of-00002.parquet").read_bytes())
    with pytest.raises(TerminalError, match="occurs twice"):
        list(load(tmp_path / "twice"))


def test_open_by_text(tmp_path: Path) -> None:
    write_snapshot(tmp_path / WINDOW)
    assert len(open_benchmark(str(tmp_path / WINDOW))) == 6
    assert len(open_benchmark(f"nest:{tmp_path / WINDOW}?limit=3")) == 3
    assert open_benchmark("261109_261115", snapshots=tmp_path).name == WINDOW
    with pytest.raises(ConfigError, match="nest:SOURCE"):
        open_benchmark("nset:/nowhere/at/all")
    with pytest.raises(ConfigError, match="no snapshot"):
        load(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="whole number"):
        open_benchmark(f"nest:{tmp_path / WINDOW}?limit=three")
    with pytest.raises(ConfigError, match="colour"):
        open_benchmark(f"nest:{tmp_path / WINDOW}?colour=red")

"""Every loader reads its stored sample: by digest, by count, by the pixels of its masks, and refuses a changed one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.core.errors import ConfigError, NestError
from inference.benchmarks import segzero
from inference.benchmarks.registry import LOADERS, open_benchmark

DATA = Path(__file__).parents[2] / "data" / "benchmarks"
STORED = json.loads((DATA / "samples.json").read_text(encoding="utf-8"))


def opened(folder: Path, name: str) -> str:
    loader, colon, source = STORED[name]["open"].rpartition(":")
    return f"{loader}{colon}{folder / source}"


def test_every_loader_has_one() -> None:
    loaders = {told["open"].partition(":")[0] if ":" in told["open"] else "nest" for told in STORED.values()}
    assert loaders == set(LOADERS)


@pytest.mark.parametrize("name", sorted(STORED))
def test_a_stored_sample_is_read_as_it_was_stored(name: str) -> None:
    told, text = STORED[name], opened(DATA, name)
    found = open_benchmark(f"{text}{'&' if '?' in text else '?'}sha256={told['sha256'][:16]}")
    assert (found.digest, len(found)) == (told["sha256"], told["count"])
    samples = list(found)
    assert [[int(truth.mask.sum()) for truth in sample.masks()] for sample in samples] == told["pixels"]
    for sample in samples:
        assert sample.question
        for image, truth in zip(sample.images(), sample.masks(), strict=True):
            assert image.shape[:2] == truth.shape


@pytest.mark.parametrize("name", sorted(STORED))
def test_a_changed_sample_is_not_what_was_pinned(tmp_path: Path, name: str) -> None:
    shutil.copytree(DATA, tmp_path / "data")
    for path in (tmp_path / "data").rglob("*"):
        # a space more in every JSON, a text more in every table: still readable, other bytes
        if path.suffix == ".json" and path.parent != tmp_path / "data":
            path.write_bytes(path.read_bytes() + b" ")
        elif path.suffix in (".parquet", ".p"):
            _grow(path)
    text = opened(tmp_path / "data", name)
    with pytest.raises(ConfigError, match="not what was pinned"):
        open_benchmark(f"{text}{'&' if '?' in text else '?'}sha256={STORED[name]['sha256'][:16]}")


def _grow(path: Path) -> None:
    if path.suffix == ".p":
        path.write_bytes(path.read_bytes() + b" ")
        return
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"note": "other bytes"}), path)


def test_seg_zeros_training_rows_give_boxes_and_points() -> None:
    first, second = segzero.read_targets(DATA / "seg-zero-training")
    assert first.targets[0].box == second.targets[0].box
    assert [len(one.targets[0].points) for one in (first, second)] == [1, 2]


@pytest.mark.parametrize("name", sorted(STORED))
def test_a_cut_file_is_named(tmp_path: Path, name: str) -> None:
    shutil.copytree(DATA, tmp_path / "data")
    for path in (tmp_path / "data").rglob("*"):
        if path.suffix in (".parquet", ".p", ".json", ".toml"):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(NestError) as caught:
        list(open_benchmark(opened(tmp_path / "data", name)))
    assert str(tmp_path / "data") in str(caught.value)

"""Checking snapshot folders: a changed byte anywhere shows, and each kind of damage gets its own finding."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image as PilImage
from support import snapshots

from engine.core.errors import ConfigError
from engine.snapshot.features import default_features
from engine.snapshot.findings import Finding, Findings, Kind
from engine.snapshot.manifest import file_digests, read_manifest, seal, to_bytes
from engine.snapshot.verify import verify


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(folder, 3, images_per_article=2)
    return folder


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    folder = tmp_path / good.name
    shutil.copytree(good, folder)
    return folder


def kinds(found: list[Finding]) -> set[Kind]:
    return {item.kind for item in found}


def resealed(folder: Path) -> None:
    """Make the manifest agree with the files, as a careless program would."""
    manifest = read_manifest(folder)
    told = manifest.model_copy(update={"files": file_digests(folder)})
    (folder / "snapshot.json").write_bytes(to_bytes(seal(told)))


def rewrite(folder: Path, table: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    path = next((folder / table).glob("*.parquet"))
    old = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(change(old.to_pylist()), schema=old.schema), path)
    resealed(folder)


def png(pixels: np.ndarray, mode: str | None = None) -> bytes:
    out = io.BytesIO()
    PilImage.fromarray(pixels, mode=mode).save(out, "PNG")
    return out.getvalue()


def test_a_good_folder_has_no_findings(good: Path) -> None:
    assert verify(good) == []
    assert verify(good, repo=f"news/{good.name}") == []
    assert verify(good, rows=False) == []


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        verify(tmp_path / "nothing")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_corrupted_byte_anywhere_is_found(good: Path, data: st.DataObject) -> None:
    files = sorted(path for path in good.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    try:
        path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
        assert verify(good, rows=False), f"{path.name} at {place}"
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_cut_file_is_found(copy: Path, cut: int) -> None:
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        path.write_bytes(whole[:cut])
        assert verify(copy), path
        path.write_bytes(whole)


@pytest.mark.parametrize("table", ["data", "provenance"])
def test_a_damaged_table_is_named_and_its_consequences_are_not(copy: Path, table: str) -> None:
    (path,) = (copy / table).glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    found = verify(copy)
    assert kinds(found) == {Kind.FILE_CHANGED, Kind.PARQUET_DAMAGED}
    assert {item.file for item in found} == {f"{table}/{path.name}"}
    assert len(found) == 2


def test_missing_and_extra_files(copy: Path) -> None:
    (copy / "data" / "notes.txt").write_text("x")
    (copy / "README.md").unlink()
    found = verify(copy)
    assert {Kind.FILE_EXTRA, Kind.FILE_MISSING, Kind.CARD_MISSING} <= kinds(found)


def test_stale_shards_are_found(copy: Path) -> None:
    data = copy / "data"
    shutil.copy(data / "train-00000-of-00001.parquet", data / "train-00000-of-00002.parquet")
    resealed(copy)
    found = verify(copy)
    assert {Kind.SHARD_NAMES, Kind.ID_TWICE, Kind.ROWS, Kind.CARD_ROWS} <= kinds(found)


def change_first(field: str, value: Any) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows[0][field] = value(rows[0]) if callable(value) else value
        return rows

    return change


SMALL = np.full((10, 10), 255, dtype=np.uint8)
FULL = np.zeros((48, 64), dtype=np.uint8)
GREY = np.full((48, 64), 90, dtype=np.uint8)
RGB = np.full((48, 64, 3), 255, dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda rows: [*rows, rows[-1]], Kind.ID_TWICE),
        (lambda rows: rows[::-1], Kind.ID_ORDER),
        (lambda rows: rows[:-1], Kind.ROWS),
        (change_first("question", " "), Kind.TEXT_EMPTY),
        (change_first("images", []), Kind.NO_BYTES),
        (change_first("images", lambda row: row["images"][:1]), Kind.MASK_COUNT),
        (change_first("images", lambda row: [{"bytes": None, "path": "/home/me/0.jpg"}] * 2), Kind.FOREIGN_PATH),
        (change_first("images", lambda row: [{"bytes": b"no image", "path": None}] * 2), Kind.IMAGE_BROKEN),
        (change_first("annotations", lambda row: [{"bytes": b"no mask", "path": None}] * 2), Kind.MASK_BROKEN),
        (change_first("annotations", lambda row: [{"bytes": png(SMALL), "path": None}] * 2), Kind.MASK_SIZE),
        (change_first("annotations", lambda row: [{"bytes": png(FULL), "path": None}] * 2), Kind.MASK_EMPTY),
        (change_first("annotations", lambda row: [{"bytes": png(GREY), "path": None}] * 2), Kind.MASK_MODE),
        (change_first("annotations", lambda row: [{"bytes": png(RGB), "path": None}] * 2), Kind.MASK_MODE),
        (change_first("annotations", lambda row: row["annotations"][::-1]), Kind.PROVENANCE_DIFFERS),
        (change_first("images", lambda row: row["images"][::-1]), Kind.PROVENANCE_DIFFERS),
    ],
)
def test_wrong_rows_are_found(copy: Path, change: Any, kind: Kind) -> None:
    rewrite(copy, "data", change)
    assert kind in kinds(verify(copy))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda rows: rows[1:], Kind.PROVENANCE_MISSING),
        (change_first("id", "ffff"), Kind.PROVENANCE_EXTRA),
        (change_first("article_url", ""), Kind.PROVENANCE_INCOMPLETE),
        (change_first("published_at", None), Kind.PROVENANCE_INCOMPLETE),
        (change_first("image_credits", ["one"]), Kind.PROVENANCE_INCOMPLETE),
        (change_first("image_widths", [1, 2]), Kind.PROVENANCE_DIFFERS),
        (change_first("masks", lambda row: row["masks"][::-1]), Kind.PROVENANCE_DIFFERS),
        (change_first("masks", lambda row: [{"size": [48, 64], "counts": "???"}] * 2), Kind.MASK_BROKEN),
    ],
)
def test_wrong_provenance_is_found(copy: Path, change: Any, kind: Kind) -> None:
    rewrite(copy, "provenance", change)
    assert kind in kinds(verify(copy))


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("| Question-answer pairs | 3 |", "| Question-answer pairs | 1,548 |", Kind.CARD_ROWS),
        ("num_examples: 3", "num_examples: 4", Kind.CARD_ROWS),
        ("dtype: string", "dtype: int64", Kind.CARD_FEATURES),
        ("size_categories:\n- n<1K", "size_categories:\n- 1K<n<10K", Kind.CARD_SIZE_CATEGORY),
        ('load_dataset("news/NEST_', 'load_dataset("other/NEST_1', Kind.CARD_REPOSITORY),
        ("configs:", "configs: [", Kind.CARD_INVALID),
        ("download_size: ", "download_size: 99", Kind.CARD_BYTES),
    ],
)
def test_a_card_that_says_something_else_is_found(copy: Path, old: str, new: str, kind: Kind) -> None:
    card = copy / "README.md"
    text = card.read_text(encoding="utf-8")
    assert old in text
    card.write_text(text.replace(old, new), encoding="utf-8")
    resealed(copy)
    assert kind in kinds(verify(copy))


def test_the_card_must_name_its_own_repository(good: Path) -> None:
    assert kinds(verify(good, repo="someone/else")) == {Kind.CARD_REPOSITORY}


def official(folder: Path, rows: int = 5) -> None:
    """A folder with the layout and the oddities of the published set: pictures in rows, a typed card, stale shards."""
    (folder / "data").mkdir(parents=True)
    schema = default_features().arrow_schema
    photo = snapshots.jpeg(snapshots.picture(1))
    mask = np.zeros((48, 64), dtype=np.uint8)
    mask[:9, :9] = 255
    found = [
        {
            "id": str(n),
            "question": "Who?",
            "answer": "She",
            "images": [{"bytes": photo, "path": "0.jpg"}],
            "annotations": [{"bytes": png(mask), "path": "0.png"}],
        }
        for n in range(rows)
    ]
    pq.write_table(pa.Table.from_pylist(found, schema=schema), folder / "data" / "train-00000-of-00001.parquet")
    pq.write_table(pa.Table.from_pylist([], schema=schema), folder / "data" / "train-00000-of-00002.parquet")
    (folder / "README.md").write_text(
        "---\ndataset_info:\n  features:\n  - name: id\n    dtype: string\n  - name: question\n    dtype: string\n"
        "  - name: answer\n    dtype: string\n  - name: images\n    list: image\n"
        "  - name: annotations\n    list: image\n"
        "  splits:\n  - name: train\n    num_bytes: 881762328\n    num_examples: 5\n  download_size: 1756619925\n"
        "  dataset_size: 881762328\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n"
        "    path: data/train-*\nlicense: cc-by-nc-4.0\nsize_categories:\n- n<1K\n---\n# NEST\n\n"
        "| Statistic | Value |\n|---|---|\n| Total QA pairs | 7 |\n\n```python\n"
        'ds = load_dataset("Somebody/NEST_250323_250411")\n```\n',
        encoding="utf-8",
    )


def test_the_published_layout_is_checked_and_its_faults_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "NEST_250323_250411"
    official(folder)
    found = verify(folder, repo="Owner/NEST_250323_250411")
    assert kinds(found) == {
        Kind.MANIFEST_MISSING,
        Kind.SHARD_NAMES,
        Kind.PROVENANCE_MISSING,
        Kind.CARD_ROWS,
        Kind.CARD_BYTES,
        Kind.CARD_REPOSITORY,
    }
    told = " ".join(item.detail for item in found)
    assert "7 samples, the data has 5" in told
    assert "1.99" in told
    assert "loads Somebody/NEST_250323_250411, the data lies in Owner/NEST_250323_250411" in told


def test_many_findings_of_a_kind_are_counted_not_listed() -> None:
    found = Findings()
    for n in range(50):
        found.note("f", Kind.ID_TWICE, str(n))
    closed = found.closed()
    assert len(closed) == Findings.LIMIT + 1
    assert "30 more" in closed[-1].detail


def test_an_orientation_tag_left_in_a_picture_is_found(copy: Path) -> None:
    exif = PilImage.Exif()
    exif[0x0112] = 6
    turned = snapshots.jpeg(snapshots.picture(3), exif=exif.tobytes())
    rewrite(copy, "data", change_first("images", lambda row: [{"bytes": turned, "path": None}] * 2))
    assert {Kind.IMAGE_TURNED, Kind.MASK_SIZE} <= kinds(verify(copy))

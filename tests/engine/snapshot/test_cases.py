"""Reported cases 40 (names), 41 (lists of pictures), 44 (answers of the Hub) and 45 (same bytes)."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from PIL import Image as PilImage

from engine.core.store import sha256_file
from engine.core.windows import parse_window
from engine.snapshot.hub_client import Decision, Then, decide
from engine.snapshot.names import repo_id, shard_name, usable_split
from engine.snapshot.parquet import ShardWriter

CASES = Path(__file__).parents[2] / "data" / "cases"


def load(case: str, name: str) -> Any:
    return json.loads((CASES / case / name).read_text(encoding="utf-8"))


# -- 40


@pytest.mark.parametrize(("name", "right"), sorted(load("40-snapshot-names", "expected.json").items()))
def test_split_names(name: str, right: bool) -> None:
    assert usable_split(name) is right
    if not right:
        with pytest.raises(ValueError):
            shard_name(name, 0, 1)


def test_a_dated_snapshot_has_a_name_that_is_undone_on_reading() -> None:
    window = parse_window("2026-03-02..2026-03-08")
    assert window.name == "NEST_260302_260308"
    assert usable_split(window.name)
    assert parse_window(window.name) == window
    assert repo_id("news/{name}", window.name) == "news/NEST_260302_260308"


# -- 41


def test_lists_of_pictures_survive_the_loss_of_their_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(CASES / "41-list-of-images", source)
    pictures = datasets.List(datasets.Image())
    text = datasets.Value("string")
    features = datasets.Features({"id": text, "images": pictures, "masks": pictures, "entities": datasets.List(text)})
    expected = load("41-list-of-images", "expected.json")

    def embedded(name: str | None) -> dict[str, Any] | None:
        return None if name is None else {"bytes": (source / name).read_bytes(), "path": name}

    with ShardWriter(tmp_path / "out" / "data", features) as writer:
        for row in json.loads((source / "rows.json").read_text()):
            told = {**row, "images": [embedded(n) for n in row["images"]], "masks": [embedded(n) for n in row["masks"]]}
            writer.write(told, 1000)
    shutil.rmtree(source)
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    data = datasets.load_dataset(str(tmp_path / "elsewhere"), split="train", cache_dir=str(tmp_path / "cache"))
    assert [len(row) for row in data["images"]] == expected["images"]
    assert [len(row) for row in data["masks"]] == expected["masks"]
    assert data[2]["masks"][1] is None
    assert data[2]["masks"][0] is not None
    assert data[1]["masks"] == []
    assert [image.size for image in data[0]["images"]] == [(8, 6), (6, 8)]
    for path in (tmp_path / "elsewhere" / "data").glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            for item in filter(None, row["images"] + row["masks"]):
                assert PilImage.open(io.BytesIO(item["bytes"])).format == "PNG"
                assert "/" not in (item["path"] or "")


# -- 44


ANSWERS = {answer["id"]: answer for answer in load("44-hub-conflict", "responses.json")}


def what_to_do(name: str) -> Decision:
    answer = ANSWERS[name]
    return decide(answer["status"], answer["headers"], answer["message"])


@pytest.mark.parametrize(
    ("name", "then"),
    [
        ("412", Then.REBUILD),
        ("409", Then.WAIT),
        ("429a", Then.WAIT),
        ("429b", Then.LATER),
        ("500but", Then.LOOK),
        ("504", Then.LOOK),
        ("403", Then.STOP),
        ("404", Then.STOP),
    ],
)
def test_what_each_answer_means(name: str, then: Then) -> None:
    assert what_to_do(name).then is then


def test_waits_are_what_the_hub_says_and_grow_by_themselves() -> None:
    assert what_to_do("429a").wait_s == 56
    assert what_to_do("429b").wait_s == 3600
    pauses = [decide(503, {}, "", tried=tried).wait_s for tried in range(8)]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[3]
    assert pauses[-1] == 30
    assert decide(429, {"retry-after": "7"}, "").wait_s == 8
    assert decide(429, {"retry-after": "500"}, "").then is Then.LATER


# -- 45


def test_the_same_rows_in_any_order_are_the_same_bytes(tmp_path: Path) -> None:
    """Rows are ordered by id here (ids come from content), never by a title: r3 and r4 differ only in Unicode form."""
    rows = load("45-same-bytes", "rows.json")
    text = datasets.Value("string")
    features = datasets.Features(dict.fromkeys(rows[0], text))
    digests, orders = set(), set()
    for seed in range(5):
        shuffled = rows[:]
        random.Random(seed).shuffle(shuffled)
        with ShardWriter(tmp_path / str(seed), features) as writer:
            for row in sorted(shuffled, key=lambda row: row["id"]):
                writer.write(row, 100)
        path = writer.paths[0]
        digests.add(sha256_file(path))
        found = pq.read_table(path).to_pylist()
        orders.add(tuple(row["id"] for row in found))
        assert found == sorted(rows, key=lambda row: row["id"])
    assert len(digests) == 1
    assert orders == {tuple(sorted(row["id"] for row in rows))}

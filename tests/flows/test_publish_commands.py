"""`nest push`, `verify`, `amend`, `takedown` and `rehydrate` as a user types them, against the Hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import snapshots
from support.desk import NAME, REPO, Desk
from support.hub import LoopbackHub, free_port


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with LoopbackHub() as hub:
        found = Desk(tmp_path, hub)
        snapshots.snapshot(found.snapshot, 4)
        yield found


@pytest.mark.slow
def test_a_snapshot_goes_to_the_hub_and_is_corrected_and_taken_down(desk: Desk) -> None:
    planned = desk.nest("push", NAME, "--repo", "news/{name}", "--dry-run")
    assert f"would create {REPO}" in planned.stderr
    assert not desk.hub.repos
    desk.nest("push", NAME, "--repo", "news/{name}", "--private")
    assert desk.hub.repo(REPO).private
    again = json.loads(desk.nest("push", NAME, "--repo", "news/{name}", "--json").stdout)
    assert again["done"] == "nothing to do"
    assert "good" in desk.nest("verify", f"{REPO}@r1").stderr
    row = json.loads((desk.snapshot / "snapshot.json").read_text())["rows"]
    assert row == 4
    name = _first_id(desk.snapshot)
    desk.nest("amend", NAME, name, "--answer", "Ada Byron", "--because", "misspelt")
    refused = desk.nest("push", NAME, "--repo", "other/{name}", code=2, HF_TOKEN="hf_wrong")
    assert "HF_TOKEN" in refused.stderr
    desk.nest("push", NAME, "--repo", "news/{name}")
    assert set(desk.hub.repo(REPO).tags) == {"r1", "r2"}
    told = desk.nest("takedown", "--id", name)
    assert "removed 1 rows in 2 revisions" in told.stderr
    assert json.loads(desk.hub.files(REPO)["snapshot.json"])["rows"] == 3
    assert set(desk.hub.repo(REPO).tags.values()) == {desk.hub.repo(REPO).branches["main"]}
    assert "good" in desk.nest("verify", NAME).stderr


def test_a_hub_that_is_not_there_is_a_sentence_of_its_own(desk: Desk) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    for words in (("push", NAME, "--repo", "news/{name}"), ("verify", f"{REPO}@r1")):
        done = desk.nest(*words, code=3, HF_ENDPOINT=nowhere)
        last = done.stderr.strip().splitlines()[-1]
        assert "reading news/" in last
        assert "run the same command again later" in last
        assert "push" not in last


def test_damaged_records_are_told_in_one_line(desk: Desk) -> None:
    manifest = desk.snapshot / "snapshot.json"
    raw = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**raw, "rows": "many", "extra": 1}))
    found = desk.nest("verify", NAME, code=1).stdout
    (line,) = (line for line in found.splitlines() if "manifest_damaged" in line)
    assert "rows: " in line
    assert "extra: " in line
    reviews = desk.folder / "reviews.jsonl"
    reviews.write_text('{"sample_id": "a", "verdict": "perhaps"}\n')
    manifest.write_text(json.dumps(raw))
    said = desk.nest("amend", NAME, "--reviews", str(reviews), code=2).stderr
    assert "line 1: not a review: verdict: " in said
    assert "pydantic" not in said


def test_a_damaged_folder_is_not_pushed_anywhere(desk: Desk) -> None:
    data = desk.snapshot / "data" / "train-00000-of-00001.parquet"
    with data.open("ab") as handle:
        handle.write(b"x")
    for repo in ("news/{name}", "other/{name}"):
        said = desk.nest("push", NAME, "--repo", repo, "--dry-run", code=1).stderr
        assert "a fault in the program" not in said
        assert NAME in said
    data.unlink()
    assert "is missing" in desk.nest("push", NAME, "--repo", "other/{name}", code=1).stderr
    assert not desk.hub.repos


def test_a_snapshot_of_addresses_asks_to_be_rehydrated(desk: Desk) -> None:
    other = desk.folder / "home" / "snapshots" / "NEST_261116_261122"
    snapshots.snapshot(other, 2, config=snapshots.CONFIG.model_copy(update={"publish": "urls"}))
    said = desk.nest("score", str(other), "--segmenter", "portable", code=2).stderr
    assert f"nest rehydrate {other}" in said


def _first_id(folder: Path) -> str:
    import pyarrow.parquet as pq

    (path,) = (folder / "data").glob("*.parquet")
    return str(pq.read_table(path, columns=["id"])["id"][0].as_py())

"""Scores that others can check: shared beside the data, replayed elsewhere, cited; and what a model knows."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import snapshots
from support.desk import NAME, REPO, Desk, desk_with_predictions
from support.llm_server import LlmServer, Scripted, completion

from engine.core.masks import decode_rle, encode_rle
from engine.core.schema import Rle
from engine.snapshot.revise import Row, read_rows

SCORES = "news/scores"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A scored snapshot on the Hub: predictions that are right for all but one row."""

    def predicted(place: int, row: Row) -> dict[str, Any]:
        (told,) = row.provenance["masks"]
        mask = decode_rle(Rle(size=tuple(told["size"]), counts=told["counts"]))
        return {"masks": [encode_rle(mask if place else ~mask).model_dump()], "answer": row.default["answer"]}

    with desk_with_predictions(tmp_path, predicted) as found:
        yield found


@pytest.mark.slow
def test_a_score_is_shared_and_replayed_by_others(desk: Desk, tmp_path: Path) -> None:
    desk.nest("push", NAME, "--repo", "news/{name}")
    desk.nest("score", f"{REPO}@r1", "--predictions", "mine.jsonl")
    (report,) = (desk.folder / "home" / "reports").glob("*/*/report.json")
    string = json.loads(report.read_text())["score_string"]
    assert string.startswith(f"nest1|data={REPO}@")
    cited = desk.nest("cite", str(report)).stdout
    assert string in cited
    assert "\\begin{tabular}" in cited
    assert "@misc{" in cited
    told = json.loads(desk.nest("report", "--all", "--anchor", "files:mine.jsonl", "--push", SCORES, "--json").stdout)
    assert {"leaderboard.html", "leaderboard.json", "leaderboard.md"} < set(told["pushed"])
    assert any(name.startswith("published/") and name.endswith(".parquet") for name in told["pushed"])
    again = json.loads(desk.nest("report", "--all", "--anchor", "files:mine.jsonl", "--push", SCORES, "--json").stdout)
    assert again["pushed"] == []

    other = Desk(tmp_path / "elsewhere", desk.hub)
    other.folder.mkdir()
    same = other.nest("replay", string, "--published", SCORES)
    assert "the same digits" in same.stderr
    assert "files:mine.jsonl: gIoU 8" in same.stdout
    here = desk.nest("replay", string)
    assert here.stdout == same.stdout

    name = next(iter(read_rows(desk.snapshot))).id
    desk.nest("takedown", "--id", name)
    third = Desk(tmp_path / "later", desk.hub)
    third.folder.mkdir()
    moved = third.nest("replay", string, "--published", SCORES, code=1)
    assert f"rows removed since: {name}" in moved.stdout
    assert "no longer has" in moved.stderr
    assert "files:mine.jsonl giou: published" in moved.stdout
    unknown = third.nest("replay", string.replace("seed=0", "seed=1"), "--published", SCORES, code=2)
    assert "no published run of" in unknown.stderr
    nowhere = third.nest("replay", string, "--published", "/no/where", code=2)
    assert "give a folder or OWNER/NAME" in nowhere.stderr


def knows(body: Mapping[str, Any]) -> Scripted:
    """A model that recognises one person in pictures, and knows nothing without them."""
    content = body["messages"][-1]["content"]
    pictures = [part for part in content if part.get("type") == "image_url"] if isinstance(content, list) else []
    for picture in pictures:
        data = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
        assert data[:2] == b"\xff\xd8"
    return completion(f"I think this is {snapshots.NAMES[0]}." if pictures else "I do not know.")


@pytest.mark.slow
def test_what_a_model_knows_is_asked_once_and_splits_the_scores(desk: Desk) -> None:
    with LlmServer(reply=knows) as server:
        ask = ("novelty", NAME, "--model", "tiny-mllm-1", "--base-url", server.url)
        told = json.loads(desk.nest(*ask, "--json", OPENAI_API_KEY=server.key).stdout)
        # of five rows with five names one is whom the model always names
        assert told["labels"] == {"emerging": 1, "novel": 4}
        asked = sum(server.seen.values())
        assert asked == 5 * 5
        desk.nest(*ask, OPENAI_API_KEY=server.key)
        assert sum(server.seen.values()) == asked
    lines = [json.loads(line) for line in Path(desk.folder, told["path"]).read_text().splitlines()]
    assert all(len(line["evidence"]) == 5 and line["model"] == "tiny-mllm-1" for line in lines)
    (known,) = (line for line in lines if line["label"] == "emerging")
    assert [one["matches"] for one in known["evidence"]] == [True] * 3 + [False] * 2
    desk.nest("score", NAME, "--predictions", "mine.jsonl", NEST__SCORE__NOVELTY_MODEL="tiny-mllm-1")
    (path,) = (desk.folder / "home" / "reports").glob("*/*/report.json")
    report = json.loads(path.read_text())
    parts = {
        row["part"]: row["samples"]
        for row in report["rows"]
        if row["split"] == "novelty:tiny-mllm-1"
        if row["kind"] == "segmenter"
    }
    assert parts == {"emerging": 1, "novel": 4}
    assert "base=tiny-mllm-1" in report["score_string"]
    missing = desk.nest("score", NAME, "--predictions", "mine.jsonl", code=2, NEST__SCORE__NOVELTY_MODEL="other")
    assert "nest novelty" in missing.stderr


def test_retired_and_cut_off_are_settings_of_the_leaderboard(desk: Desk) -> None:
    desk.nest("score", NAME, "--predictions", "mine.jsonl")
    settings = {
        "NEST__SCORE__RETIRED": json.dumps({"old-model": "its weights were withdrawn"}),
        "NEST__SCORE__CUTOFFS": json.dumps({"files:mine.jsonl": "2026-10-01"}),
    }
    desk.nest("report", "--all", **settings)
    text = (desk.folder / "home" / "leaderboard" / "leaderboard.md").read_text()
    assert "old-model is retired: its weights were withdrawn" in text
    assert "After the knowledge cut-off" in text
    assert "2026-10-01" in text
    wrong = desk.nest("report", "--all", code=2, NEST__SCORE__CUTOFFS=json.dumps({"files:mine.jsonl": "autumn"}))
    assert "not a date YYYY-MM-DD" in wrong.stderr

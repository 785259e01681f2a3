"""Sealed and held-back weeks through the command, against a Hub on loopback."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.hub import LoopbackHub
from support.published import NAME, REPO, WINDOW, Home, everything, save, values

from engine.core.schema import ScoreReport, SegmenterInfo, TruthInfo
from engine.snapshot.sealed import commitment, sealed_id
from flows import sealed

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


def test_nothing_in_the_first_push_gives_an_answer_or_a_mask_away(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "sealed = 52")
    home.nest("push", WINDOW)
    first = save(hub, tmp_path / "first", "sealed")
    assert sorted(p.relative_to(first).as_posix() for p in first.rglob("*") if p.is_file() and p.name[0] != ".") == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "seal.json",
    ]
    data = everything(hub, first)
    low = data.lower()
    (first / "README.md").rename(tmp_path / "card.md")
    data_only = b"\n".join(path.read_bytes() for path in first.rglob("*") if path.is_file()).lower()
    shown = pq.read_table(next(first.glob("data/*.parquet"))).to_pylist()
    data_only += b"\n".join(values(shown)).lower()
    manifest = json.loads((home.snapshot / "snapshot.json").read_text())
    for row in home.rows():
        told = row.provenance
        names = {row.default["answer"], *told["aliases"], *(e["name"] for e in told["entities"])}
        words = {word for name in names for word in name.split() if len(word) > 3}
        # the words of names (not "9" or "Two") stand in no data; the card's prose may hold "line"
        assert not [word for word in words if word.encode().lower() in data_only]
        texts = {
            *(name for name in names if len(name) > 3),
            row.id,
            told["title"],
            told["article_url"],
            told["canonical_url"],
            told["caption"],
            told["evidence"],
            *told["image_urls"],
            *told["image_captions"],
            *told["image_phashes"],
            *told["image_sha256"],
            *told["image_published_sha256"],
            *(mask["counts"] for mask in told["masks"]),
            *(hashlib.sha256(item["bytes"]).hexdigest() for item in row.default["annotations"]),
        }
        for text in texts:
            assert text.encode().lower() not in low, text
        for item in row.default["annotations"]:
            assert item["bytes"] not in data
        # nor can a guess be tried: no hash of what a guesser can write down
        for guess in (row.default["answer"], row.id, json.dumps([row.id, row.default["answer"]])):
            for kind in ("md5", "sha1", "sha256"):
                assert hashlib.new(kind, guess.encode()).hexdigest().encode() not in low
        assert commitment(
            b"", row.id, row.default["answer"], [i["bytes"] for i in row.default["annotations"]]
        ) not in str(data)
    assert manifest["digest"].encode() not in data
    assert manifest["key"].encode() not in data
    assert json.loads((home.root / "sealed" / f"{NAME}.json").read_text())["key"].encode() not in data
    # what is published is what was promised: pictures and questions
    assert {row["question"] for row in shown} == {row.default["question"] for row in home.rows()}
    pictures = {item["bytes"] for row in shown for item in row["images"]}
    assert pictures == {item["bytes"] for row in home.rows() for item in row.default["images"]}
    assert (home.root / "sealed" / f"{NAME}.json").stat().st_mode & 0o077 == 0


def test_a_stranger_checks_the_published_hashes_with_the_script_of_the_docs(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "sealed = 52")
    home.nest("push", WINDOW)
    home.nest("unseal", WINDOW, code=4)
    first = save(hub, tmp_path / "first", "sealed")
    home.nest("unseal", WINDOW, "--early")
    home.nest("unseal", WINDOW, "--early")
    now = save(hub, tmp_path / "now", "main")
    assert set(hub.repo(REPO).tags) == {"sealed", "r1"}
    found = re.search(
        r"^```python check\n(.*?)^```", (ROOT / "docs" / "sealed.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    assert len(found[1].splitlines()) <= 11
    script = tmp_path / "check.py"
    script.write_text(found[1])

    def check() -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, str(script), str(first), str(now)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert check().stdout.strip() == "every answer and mask is what was promised"
    assert "good" in home.nest("verify", REPO).stderr
    # an answer that was changed afterwards shows
    path = next(now.glob("data/*.parquet"))
    table = pq.read_table(path)
    answers = ["Somebody Else", *table.column("answer").to_pylist()[1:]]
    pq.write_table(table.set_column(table.column_names.index("answer"), "answer", [answers]), path)
    assert "AssertionError" in check().stderr


def test_predictions_received_before_are_marked(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "sealed = 52")
    assert "is not a sealed week" in home.nest("receive", WINDOW, "nest.toml", code=2).stderr
    home.nest("push", WINDOW)
    shown = pq.read_table(next(save(hub, tmp_path / "first", "sealed").glob("data/*.parquet"))).to_pylist()
    kept = sealed.read(home.root, NAME)
    assert kept is not None
    by_sealed = {sealed_id(kept.secret, row.id): row for row in home.rows()}
    assert set(by_sealed) == {row["id"] for row in shown}
    masks = {name: row.provenance["masks"] for name, row in by_sealed.items()}
    (tmp_path / "ours.jsonl").write_text("".join(json.dumps({"id": n, "masks": m}) + "\n" for n, m in masks.items()))
    told = json.loads(home.nest("receive", WINDOW, "ours.jsonl", "--json").stdout)
    assert told == json.loads(home.nest("receive", WINDOW, "ours.jsonl", "--json").stdout)
    home.nest("unseal", WINDOW, "--early")
    assert "no longer sealed" in home.nest("receive", WINDOW, "nest.toml", code=4).stderr
    opened = sealed.read(home.root, NAME)
    assert opened is not None
    (path,) = sealed.opened_files(home.root, opened)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["id"] for line in lines} == {row.id for row in home.rows()}
    label = f"files:{path.name}"
    report = ScoreReport(
        dataset=NAME,
        convention="lisa",
        truths=(TruthInfo(name="snapshot"),),
        segmenters=(SegmenterInfo(name=label), SegmenterInfo(name="lisa")),
        rows=(),
    )
    notes = {info.name: info.note for info in sealed.mark(report, home.root).segmenters}
    assert notes[label].startswith("sealed: received 20")
    assert notes["lisa"] == ""
    scored = json.loads(home.nest("score", WINDOW, "--predictions", str(path), "--json").stdout)
    page = (Path(scored["report"]) / "report.html").read_text()
    assert "sealed: received" in page
    row = next(r for r in scored["scores"] if r["kind"] == "segmenter")
    assert row["figures"]["giou"]["value"] == 1.0


def test_a_week_is_sealed_only_until_its_day(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "sealed = 1")
    kept = sealed.SealedWeek(
        name=NAME, revision="r1", repo=REPO, key="00" * 32, opens=datetime.now(UTC).date() + timedelta(days=1)
    )
    (home.root / "sealed").mkdir()
    (home.root / "sealed" / f"{NAME}.json").write_text(kept.line())
    now = datetime.now(UTC)
    assert sealed.due(home.root, now=now) == []
    assert [week.name for week in sealed.due(home.root, now=now + timedelta(days=2))] == [NAME]
    assert "no sealed week is due" in home.nest("unseal", "--due").stderr
    # switching the setting off does not publish answers that were promised to stay sealed
    home.nest("push", WINDOW)
    (tmp_path / "nest.toml").write_text((tmp_path / "nest.toml").read_text().replace("sealed = 1", ""))
    home.nest("push", WINDOW)
    assert "snapshot.json" not in hub.files(REPO)


def test_a_removed_row_goes_from_the_sealed_repository(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "sealed = 52")
    home.nest("push", WINDOW)
    before = json.loads(hub.files(REPO)["seal.json"])
    row = home.rows()[0]
    told = home.nest("takedown", "--id", row.id, code=3)
    assert "is sealed" in told.stderr
    home.nest("push", WINDOW)
    after = json.loads(hub.files(REPO)["seal.json"])
    assert len(after["commitments"]) == 4
    assert after["commitments"].items() <= before["commitments"].items()
    gone = row.default["images"][0]["bytes"]
    assert gone not in everything(hub, save(hub, tmp_path / "after", "main"))

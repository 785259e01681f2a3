"""The commands that look at, correct and pass on a finished week."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.week import PILOT, SMALL, WINDOW, Week

from engine.core.schema import Question, Rejected
from engine.core.store import StageDir


@pytest.fixture
def week(undisturbed: Week, tmp_path: Path) -> Iterator[Week]:
    """A copy of the finished week that a test may change."""
    shutil.copytree(undisturbed.home, tmp_path / "home")
    with Week(tmp_path, overrides=SMALL) as copy:
        yield copy


def _stage(week: Week, name: str) -> StageDir:
    (manifest,) = week.home.glob(f"windows/{WINDOW}/{name}/*/manifest.json")
    return StageDir(manifest.parent)


def _rows(week: Week) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, object]] = []
    for path in sorted((week.home / "snapshots" / PILOT / "data").glob("*.parquet")):
        rows += pq.read_table(path, columns=["id", "question", "answer"]).to_pylist()
    return rows


def test_the_snapshot_loads_as_published_and_joins_with_its_provenance(undisturbed: Week, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom datasets import Image, List, Value, load_dataset\n"
        "rows = load_dataset(sys.argv[1], split='train')\n"
        "assert list(rows.features) == ['id', 'question', 'answer', 'images', 'annotations'], rows.features\n"
        "assert all(rows.features[n] == Value('string') for n in ('id', 'question', 'answer'))\n"
        "assert rows.features['images'] == List(Image()) == rows.features['annotations']\n"
        "origin = load_dataset(sys.argv[1], 'provenance', split='train')\n"
        "assert rows['id'][:] == origin['id'][:] and len(set(rows['id'])) == len(rows) > 3\n"
        "for row in rows:\n"
        "    assert [i.size for i in row['images']] == [a.size for a in row['annotations']]\n"
        "    assert all(a.mode == 'L' for a in row['annotations'])\n"
        "test = load_dataset(sys.argv[1], 'benchmark', split='test')\n"
        "assert test['id'][:] == rows['id'][:]\n"
    )
    env = {**undisturbed.env(), "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    folder = str(undisturbed.home / "snapshots" / PILOT)
    done = subprocess.run([sys.executable, "-c", code, folder], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_show_tells_a_rows_whole_story(week: Week) -> None:
    row = _rows(week)[0]
    told = json.loads(week.nest("show", str(row["id"]), "--json").stdout)
    stages = [chapter["stage"] for chapter in told["found"]]
    assert stages == ["collect", "ask", "annotate"]
    question = told["found"][1]["record"]
    assert question["question"] == row["question"]
    assert told["found"][0]["record"]["date_witnesses"]
    assert told["found"][2]["record"]["images"][0]["binding"]["evidence"]


@pytest.mark.parametrize("stage", ["collect", "ask"])
def test_show_tells_why_something_was_left_out(week: Week, stage: str) -> None:
    lost = next(item for item in _stage(week, stage).rejected() if isinstance(item, Rejected))
    told = week.nest("show", lost.item).stdout
    assert f"left out in {stage}: {lost.code.value}" in told
    assert " ".join(lost.detail.split()) in told


def test_show_of_an_unknown_id_names_the_nearest(week: Week) -> None:
    question = _stage(week, "ask").read(Question)[0]
    close = question.id[:-1] + ("0" if question.id[-1] != "0" else "1")
    assert question.id in week.nest("show", close, code=2).stderr


def test_status_counts_and_names_the_next_command(week: Week) -> None:
    told = week.nest("status", "--json").stdout
    (line,) = json.loads(told)["windows"]
    assert line["window"] == WINDOW
    assert line["stages"]["snapshot"]["kept"] == len(_rows(week))
    assert line["stages"]["score"] == {"finished": False, "kept": 0}
    screen = week.nest("status").stdout.splitlines()
    assert len(screen) == 24
    assert max(map(len, screen)) <= 80
    plain = week.nest("status", "--window", WINDOW)
    assert "left out, by reason" in plain.stdout
    assert f"nest refresh --window {WINDOW}" in plain.stderr


def test_a_corrected_row_is_a_revision_with_an_erratum(week: Week) -> None:
    row = _rows(week)[0]
    week.nest("score", WINDOW)
    planned = week.nest("amend", PILOT, str(row["id"]), "--drop", "--because", "wrong entity", "--dry-run")
    assert "removed" in planned.stderr
    done = json.loads(week.nest("amend", PILOT, str(row["id"]), "--drop", "--because", "wrong entity", "--json").stdout)
    assert done["revision"] == "r2"
    assert done["rows"] == len(_rows(week))
    assert [rank["name"] for rank in done["ranks"]] == ["portable"]
    manifest = json.loads((week.home / "snapshots" / PILOT / "snapshot.json").read_text())
    assert manifest["errata"][0]["because"] == "wrong entity"
    assert str(row["id"]) not in [r["id"] for r in _rows(week)]
    assert "good" in week.nest("verify", PILOT).stderr
    assert (week.home / "snapshots" / ".superseded" / f"{PILOT}.r1" / "snapshot.json").is_file()


def test_a_changed_byte_is_found(week: Week) -> None:
    (path,) = (week.home / "snapshots" / PILOT / "data").glob("*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    told = week.nest("verify", PILOT, code=1)
    assert path.name in told.stdout


def test_exports(week: Week, tmp_path: Path) -> None:
    told = json.loads(week.nest("export", PILOT, str(tmp_path / "coco"), "--json").stdout)
    assert told["masks"] == len(_rows(week))
    coco = json.loads((tmp_path / "coco" / "annotations.json").read_text())
    assert len(coco["annotations"]) == told["masks"]
    week.nest("export", PILOT, str(tmp_path / "coco"), code=2)
    week.nest("export", PILOT, str(tmp_path / "rs"), "--format", "reasonseg")


def test_what_is_taken_down_stays_away(week: Week) -> None:
    name = str(_rows(week)[0]["answer"])
    would = week.nest("takedown", "--entity", name, "--local-only", "--dry-run")
    assert "would remove" in would.stderr
    assert name in {row["answer"] for row in _rows(week)}
    week.nest("takedown", "--entity", name, "--local-only")
    assert name not in {row["answer"] for row in _rows(week)}
    for path in week.home.rglob("*"):
        if path.is_file() and path.parts[len(week.home.parts)] not in ("prefect",):
            assert name.encode() not in path.read_bytes(), path


def test_predictions_made_elsewhere_are_scored(week: Week, tmp_path: Path) -> None:
    folder = tmp_path / "masks"
    folder.mkdir()
    import pyarrow.parquet as pq

    (path,) = (week.home / "snapshots" / PILOT / "data").glob("*.parquet")
    for row in pq.read_table(path, columns=["id", "annotations"]).to_pylist():
        (folder / f"{row['id']}.png").write_bytes(row["annotations"][0]["bytes"])
    told = json.loads(week.nest("score", PILOT, "--predictions", str(folder), "--json").stdout)
    row = next(r for r in told["scores"] if r["kind"] == "segmenter")
    assert row["figures"]["giou"]["value"] == 1.0
    again = week.nest("score", PILOT, "--predictions", str(folder))
    assert "nothing to do" in again.stderr


def test_sources_are_tried(week: Week) -> None:
    states = json.loads(week.nest("sources", "check", "--json").stdout)
    assert {state["name"] for state in states} == {"herald", "courier", "voice"}
    assert {state["state"] for state in states} <= {"good", "warn"}


def test_a_push_without_a_repository_or_with_made_up_rows_is_refused(week: Week) -> None:
    assert "--repo" in week.nest("push", PILOT, code=2).stderr
    assert "never pushed" in week.nest("push", PILOT, "--repo", "lab/{name}", code=4).stderr
    whole = week.folder / "elsewhere" / PILOT.partition(".")[0]
    shutil.copytree(week.home / "snapshots" / PILOT, whole)
    assert "is called like it" in week.nest("push", str(whole), "--repo", "lab/other", code=2).stderr
    assert "portable" in week.nest("push", str(whole), "--repo", "lab/{name}", code=4).stderr


def test_garbage_is_only_what_nothing_names(week: Week) -> None:
    (week.home / "blobs" / "00").mkdir(parents=True, exist_ok=True)
    stray = week.home / "blobs" / "00" / ("0" * 64 + ".jpg")
    stray.write_bytes(b"x")
    told = json.loads(week.nest("gc", "--dry-run", "--json").stdout)
    assert told["blobs"] >= 1
    assert stray.is_file()
    week.nest("gc")
    assert not stray.exists()
    week.nest("snapshot", "--window", WINDOW)
    assert "good" in week.nest("verify", PILOT).stderr


def test_extract_prints_one_article_per_line(tmp_path: Path, week: Week) -> None:
    import gzip

    page = (
        "<html><head><title>A</title><meta property='article:published_time' content='2026-11-17T08:00:00Z'></head>"
        f"<body><article><h1>A title of a page</h1><p>{'Some words of text. ' * 30}</p></article></body></html>"
    )
    (tmp_path / "one.html.gz").write_bytes(gzip.compress(page.encode()))
    (tmp_path / "urls.json").write_text(json.dumps({"one.html.gz": "https://news.example/2026/11/17/a"}))
    out = week.nest(
        "extract", str(tmp_path / "one.html.gz"), "--url-from", str(tmp_path / "urls.json"), "--json"
    ).stdout
    (line,) = out.splitlines()
    article = json.loads(line)
    assert article["published_at"].startswith("2026-11-17T08:00:00")
    assert article["url"] == "https://news.example/2026/11/17/a"
    assert "Some words" in article["text"]
    assert {"title", "date_certain", "date_witnesses", "images"} <= set(article)


def test_a_thin_week_says_so_and_does_not_show_the_old_snapshot_as_its_own(week: Week) -> None:
    pilot = ("--window", WINDOW)
    enough = {"NEST__FLOWS__MIN_ROWS": "1000"}
    assert "rows, r1" in week.nest("refresh", *pilot, env=enough).stderr
    strict = {**enough, "NEST__ANNOTATE__MIN_MARGIN": "1"}
    told = week.nest("refresh", *pilot, "--revise", env=strict).stderr
    assert "thin week" in told
    assert "is of other input or settings" in told
    assert "snapshot  thin week" in told
    plain = json.loads(week.nest("refresh", *pilot, "--json", env=strict).stdout)
    assert (plain["snapshot"], plain["rows"], plain["scores"]) == (None, 0, [])
    assert plain["thin"].startswith("thin week")

"""`nest show`: an accepted row, a rejection of every stage, an unknown id; as text, JSON and page."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.snapshots import records, snapshot
from support.week import WINDOW as SAMPLE
from support.week import Week

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.core.schema import Code, Failure, Link, Prediction, Question, Rejected, Stage
from engine.core.store import BlobStore, Home, StageDir
from engine.snapshot.revise import read_rows
from engine.snapshot.verdicts import Verdict, append, file_of
from flows.story.enrich import enrich
from flows.story.gather import gather
from flows.story.nearest import nearest
from flows.story.page import page
from flows.story.show import plain, text
from flows.story.words import parts

WINDOW, NAME = "261123_261129", "NEST_261123_261129"
ROOT = Path(__file__).resolve().parents[2]
LOST = [
    ("find", Stage.COLLECT, Code.SOURCE_UNREACHABLE, "tribune"),
    ("collect", Stage.COLLECT, Code.OUTSIDE_WINDOW, "https://www.herald.example/old"),
    ("collect", Stage.COLLECT, Code.NO_CAPTION, "https://pics.herald.example/bare.jpg"),
    ("ask", Stage.ASK, Code.PRIVATE_PERSON, "q-private"),
    ("annotate", Stage.ANNOTATE, Code.BINDING_TIE, "q-tie"),
    ("snapshot", Stage.SNAPSHOT, Code.MASK_EMPTY, "0123456789abcdef"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished rows, a loss in every stage, a failed prediction, and a verdict."""
    root = tmp_path_factory.mktemp("story")
    articles, questions, annotations = records(3, BlobStore(root / "blobs"))
    links = [Link(url=a.canonical_url, source="herald", source_type="feed", title=a.title) for a in articles]
    window = root / "windows" / WINDOW
    places = {
        "find": (window / "collect" / "c1" / "found", links),
        "collect": (window / "collect" / "c1", articles),
        "ask": (window / "ask" / "a1", questions),
        "annotate": (window / "annotate" / "m1", annotations),
        "snapshot": (window / "snapshot" / "s1", []),
    }
    for name, (folder, kept) in places.items():
        lost = [
            Rejected(item=item, stage=stage, code=code, detail=f"why {code.value}", parent="https://x.example/p")
            for at, stage, code, item in LOST
            if at == name
        ]
        StageDir(folder).commit(list(kept), lost, stage=name, found=len(kept) + len(lost))
    folder = root / "snapshots" / NAME
    manifest = snapshot(folder, 3)
    shutil.rmtree(root / "snapshots" / "blobs")
    row = next(read_rows(folder))
    failed = Prediction(sample_id=row.id, segmenter="lisa", masks=(None,), failures=(Failure(kind="no_box"),))
    StageDir(root / "predictions" / NAME / "lisa" / "p1").commit([failed], [], stage="predict", found=1)
    said = Verdict(
        snapshot=NAME,
        revision="r1",
        digest=manifest.digest,
        rows=3,
        sample_id=row.id,
        stratum="random",
        verdict="bad_mask",
        reviewer="ada",
        comment="the hat is missing",
    )
    append(file_of(root, NAME, "ada"), said)
    return root


def _words(home: Path, item: str) -> str:
    return "\n".join(text(part) for part in parts(enrich(gather(home, item), Config(home=home))))


def test_an_accepted_row_is_told_from_link_to_verdict(home: Path) -> None:
    row = next(read_rows(home / "snapshots" / NAME))
    told = _words(home, row.id)
    number = row.default["question"].split()[-1].rstrip("?")
    for wanted in (
        "found\n",
        "witness     jsonld says",
        f"caption     {row.default['answer']}, left, in hall {number}",
        f"question    {row.default['question']}",
        "check       passed answer_in_source",
        "box 1 ",
        "bound by    single, margin 1.000",
        "evidence    count for box 1",
        "gate        stability 0.9 (threshold 0.7) passed",
        f"row {row.id}\n  in          {NAME} r1",
        "prediction of lisa\n  failure     no_box",
        "verdict     bad mask",
        "the hat is missing",
    ):
        assert wanted in told, wanted
    assert told.index("found\n") < told.index("article ") < told.index("question ") < told.index("mask ")


@pytest.mark.parametrize("name", ["id", "url", "picture", "question", "beginning"])
def test_the_same_story_by_every_name(home: Path, name: str) -> None:
    row = next(read_rows(home / "snapshots" / NAME))
    question = row.default["question"]
    asked = next(q for q in _stage(home, "ask").read(Question) if q.question == question)
    item = {
        "id": row.id,
        "url": row.provenance["canonical_url"],
        "picture": row.provenance["image_sha256"][0],
        "question": asked.id,
        "beginning": row.id[:8],
    }[name]
    story = gather(home, item)
    assert [chapter.stage for chapter in story.chapters] == ["collect", "collect", "ask", "annotate"]
    assert {place.id for place in story.rows} == {row.id}


def _stage(home: Path, stage: str) -> StageDir:
    (manifest,) = home.glob(f"windows/{WINDOW}/{stage}/*/manifest.json")
    return StageDir(manifest.parent)


@pytest.mark.parametrize(("at", "stage", "code", "item"), LOST, ids=lambda value: str(value))
def test_a_rejection_of_every_stage(home: Path, at: str, stage: Stage, code: Code, item: str) -> None:
    told = _words(home, item)
    assert f"left out in {stage.value}: {code.value}" in told
    assert f"because     why {code.value}" in told
    (only,) = plain(gather(home, item))["rejected"]
    assert only["record"]["item"] == item
    assert only["window"] == WINDOW


def test_what_two_configurations_left_out_is_told_apart(home: Path, tmp_path: Path) -> None:
    alone = [line for part in parts(gather(home, "q-private")) for line in part.lines]
    assert not any(label == "in" and "window" in value for label, value in alone)
    root = tmp_path / "home"
    shutil.copytree(home, root)
    lost = Rejected(item="q-private", stage=Stage.ASK, code=Code.NO_FACT, detail="nothing is said")
    StageDir(root / "windows" / WINDOW / "ask" / "a2").commit([], [lost], stage="ask", found=1)
    told = [
        (part.title, value) for part in parts(gather(root, "q-private")) for label, value in part.lines if label == "in"
    ]
    assert told == [
        ("left out in ask: private_person", f"window {WINDOW}, ask a1"),
        ("left out in ask: no_fact", f"window {WINDOW}, ask a2"),
    ]


def test_several_predictions_of_a_segmenter_say_of_which_run(home: Path) -> None:
    row = next(read_rows(home / "snapshots" / NAME)).id
    story = gather(home, row)
    story.predictions = [
        {"segmenter": "lisa", "snapshot": NAME, "key": key, "iou": [0.5], "answer": "", "text": "", "trace": []}
        for key in ("aaaaaaaaaa", "bbbbbbbbbb")
    ]
    told = [text(part) for part in parts(story) if part.title == "prediction of lisa"]
    assert [f"{NAME}, run {key}" in one for one, key in zip(told, ("aaaaaaaa", "bbbbbbbb"), strict=True)] == [
        True,
        True,
    ]
    story.predictions = story.predictions[:1]
    (alone,) = (text(part) for part in parts(story) if part.title == "prediction of lisa")
    assert "run" not in alone


def test_an_unknown_id_names_the_nearest(home: Path) -> None:
    row = next(read_rows(home / "snapshots" / NAME))
    with pytest.raises(ConfigError, match="is in no finished stage"):
        gather(home, "zzzz")
    assert row.id in nearest(home, row.id[:-1] + "x")
    assert row.id in nearest(home, row.id[:4] + "x")
    assert "herald.example/1" in nearest(home, "HERALD.example/1")
    assert f"{row.id} (row: {row.default['answer']})" in nearest(home, row.default["answer"], count=20)
    with pytest.raises(ConfigError, match="the id is empty"):
        gather(home, " ")


def test_the_page_has_pictures_masks_and_boxes_and_no_markup_from_outside(home: Path) -> None:
    row = next(read_rows(home / "snapshots" / NAME))
    story = enrich(gather(home, row.id), Config(home=home))
    told = page(story, blobs=Home(home).blobs)
    assert told.count('src="data:image/jpeg') == 2  # with the article, and with the mask
    assert told.count('src="data:image/png') == 1
    assert told.count("<rect") == 1
    assert "«gala» &lt;b&gt;" in told
    assert "<b>" not in told
    assert "<script" not in told
    gone = page(story, blobs=BlobStore(home / "nothing"))
    assert gone.count("is gone") == 2


def test_through_the_command(home: Path, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("NEST")}
    env |= {"PYTHONPATH": str(ROOT), "NEST_HOME": str(home)}

    def nest(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    row = next(read_rows(home / "snapshots" / NAME))
    assert "bound by" in nest("show", row.id).stdout
    assert json.loads(nest("show", row.id, "--json").stdout)["rows"][0]["answer"] == row.default["answer"]
    assert nest("show", row.id, "--html", "story.html").returncode == 0
    assert (tmp_path / "story.html").read_text().startswith("<!DOCTYPE html>")
    unknown = nest("show", row.id[:-1] + "x")
    assert unknown.returncode == 2
    assert row.id in unknown.stderr


def test_prompt_and_reply_of_a_question_that_a_model_wrote(undisturbed: Week) -> None:
    (manifest,) = undisturbed.home.glob(f"windows/{SAMPLE}/ask/*/manifest.json")
    question = StageDir(manifest.parent).read(Question)[0]
    told = json.loads(undisturbed.nest("show", question.id, "--json").stdout)
    assert told["replies"]
    assert told["replies"][0]["model"] == "test-model"
    assert any(question.answer in reply["text"] for reply in told["replies"])
    assert all(reply["user"] and reply["system"] for reply in told["replies"])


def test_a_word_of_the_answer_finds_the_row(home: Path) -> None:
    rows = list(read_rows(home / "snapshots" / NAME))
    assert [row.default["answer"] for row in sorted(rows, key=lambda row: str(row.default["answer"]))] == [
        "Ilse Brandvik",
        "Skarv Line Two",
        "Tomás Okafor",
    ]
    found = {str(row.default["answer"]): row.id for row in rows}
    for word in ("brandvik", "ILSE", "Ilse  Brandvik"):
        assert [row.id for row in gather(home, word).rows] == [found["Ilse Brandvik"]]
    # part of a word is none
    with pytest.raises(ConfigError, match="nearest"):
        gather(home, "brand")


def test_a_word_of_several_answers_lists_them(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "snapshots" / NAME
    snapshot(folder, 7)
    with pytest.raises(ConfigError, match=r"2 rows, name one: \w+ \(Ilse Brandvik\), \w+ \(Ilse Brandvik\)"):
        gather(tmp_path / "home", "brandvik")

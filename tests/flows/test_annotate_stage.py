"""The annotate stage over the store: what is said while it runs, what is kept of its pace, what is read how often."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.week import SMALL, WINDOW, Week

from engine.core.config import load_config
from engine.core.schema import Question
from engine.core.store import StageDir
from flows.run import run_for
from flows.stages import annotate


@pytest.fixture
def asked(undisturbed: Week, tmp_path: Path) -> Week:
    """A week whose questions are there and nothing after them."""
    week = Week(tmp_path, overrides=SMALL)
    shutil.copytree(undisturbed.home, week.home, ignore=shutil.ignore_patterns("annotate", "snapshot", "snapshots"))
    return week


def test_progress_and_pace_are_told_in_images(asked: Week) -> None:
    with asked as week:
        done = week.nest("annotate", "--window", WINDOW)
    lines = re.findall(
        r"shard (\d+): (\d+) images, ([\d.]+) images/s; (\d+) of (\d+) images of the window", done.stderr
    )
    total = int(lines[0][4])
    assert len(lines) >= 2
    assert [int(line[3]) for line in lines] == sorted({int(line[3]) for line in lines})
    assert int(lines[-1][3]) == total == sum(int(line[1]) for line in lines)
    (path,) = week.home.glob("windows/*/annotate/*/run.json")
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["images"] == total
    assert told["images_per_second"] == pytest.approx(total / told["worker_seconds"], rel=0.01)


def test_questions_are_read_once(asked: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker and every shard asks which shards there are."""
    with asked as week:
        run = run_for(load_config(week.folder / "nest.toml", environ={}), WINDOW)
    read: list[type] = []
    inner = StageDir.read

    def counted(self: StageDir, kind: type) -> list[object]:
        read.append(kind)
        return inner(self, kind)

    monkeypatch.setattr(StageDir, "read", counted)
    for _ in range(5):
        assert annotate.missing(run) == list(range(len(annotate.shards(run))))
    assert read.count(Question) == 1

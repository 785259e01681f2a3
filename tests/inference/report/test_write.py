"""The three files of a report: complete, self-contained, the same for the same input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.evaluation import WINDOW, predict, write_snapshot

from engine.core.schema import Prediction, ScoreReport, TraceStep
from inference.benchmarks.base import Benchmark
from inference.benchmarks.nest import load
from inference.metrics.score import score
from inference.report.gallery import runs
from inference.report.text import terminal
from inference.report.write import write

Scored = tuple[Benchmark, dict[str, list[Prediction]], ScoreReport]


@pytest.fixture
def scored(tmp_path: Path) -> Scored:
    masks = write_snapshot(tmp_path / WINDOW, rows=10)
    benchmark = load(tmp_path / WINDOW)
    rose = "rose:portable"
    step = TraceStep(module="irag", input="who?", output="Name </script><b>", values={"pages": "3"})
    predictions = {
        "portable": [predict(name, [np.roll(mask, 9, axis=1)], segmenter="portable") for name, mask in masks.items()],
        rose: [
            predict(name, [mask if name != "s003" else None], segmenter=rose, answer=f"Name {place}").model_copy(
                update={"trace": (step,)}
            )
            for place, (name, mask) in enumerate(masks.items())
        ],
    }
    report = score(
        benchmark,
        predictions,
        truths={"known": {name: [mask] for name, mask in masks.items()}},
        descriptions={"known": "true by construction"},
        notes=["the gain of ROSE is by construction"],
        resamples=100,
    )
    return benchmark, predictions, report


def test_files(scored: Scored, tmp_path: Path) -> None:
    benchmark, predictions, report = scored
    paths = write(report, tmp_path / "out", benchmark=benchmark, predictions=predictions)
    assert ScoreReport.read(json.loads(paths.json.read_text())) == report
    text = paths.markdown.read_text()
    for part in ("novel gIoU", "emerging cIoU", "LISA-7B + ROSE (quoted)", "by construction", report.score_string):
        assert part in text
    assert "| rose:portable | yes | 100.0 |" in text
    # the paper's rows are of other data and stand apart
    assert text.index("LISA-7B + ROSE (quoted)") > text.index("## Quoted: ROSE")
    assert text.count("LISA-7B + ROSE (quoted)") == 2
    page = paths.html.read_text()
    assert "Which person in the image won prize 3?" in page
    assert "true by construction" in page
    cards = json.loads(re.search(r'id="cards-data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert len(cards) == 10
    assert cards[3]["iou"]["snapshot"]["rose:portable"] is None
    assert cards[3]["status"]["rose:portable"] == "no_box"
    chunk = json.loads(re.search(r'id="chunk-0">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert chunk[0]["src"].startswith("data:image/jpeg;base64,")
    assert chunk[0]["trace"]["rose:portable"][0]["output"] == "Name </script><b>"


def test_page_is_self_contained(scored: Scored, tmp_path: Path) -> None:
    benchmark, predictions, report = scored
    page = write(report, tmp_path / "out", benchmark=benchmark, predictions=predictions).html.read_text()
    outside = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
    assert not re.search(r'(?:src|href)="(?!#|data:)', outside)
    assert "@import" not in outside
    assert "url(" not in outside
    assert "default-src 'none'" in page


def test_same_report_same_bytes(scored: Scored, tmp_path: Path) -> None:
    benchmark, predictions, report = scored
    first = write(report, tmp_path / "a", benchmark=benchmark, predictions=predictions)
    second = write(report, tmp_path / "b", benchmark=benchmark, predictions=predictions)
    for name in ("json", "markdown", "html"):
        assert getattr(first, name).read_bytes() == getattr(second, name).read_bytes()


def test_gallery_limit_keeps_worst_and_best(scored: Scored, tmp_path: Path) -> None:
    benchmark, predictions, report = scored
    page = write(report, tmp_path / "out", benchmark=benchmark, predictions=predictions, gallery=4).html.read_text()
    assert "6 samples are not shown" in page
    cards = json.loads(re.search(r'id="cards-data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert len(cards) == 4
    assert "s003" in {card["id"] for card in cards}


def test_without_pictures(scored: Scored, tmp_path: Path) -> None:
    page = write(scored[2], tmp_path / "out", quoted=False).html.read_text()
    assert "without pictures" in page
    assert "(quoted)" not in page


def test_terminal_names_both_truths_and_warns(scored: Scored) -> None:
    text = terminal(scored[2])
    assert "Against snapshot" in text
    assert "Against known: true by construction" in text
    assert "rose:portable − portable" in text
    assert "1 pairs failed (1 no_box)" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("-")) < 160


def test_runs_of_masks() -> None:
    mask = np.array([[0, 1, 1], [1, 0, 0]], dtype=np.bool_)
    assert runs(mask) == "1 3 2"
    assert runs(~mask) == "0 1 3 2"
    assert runs(np.zeros((5, 10), dtype=np.bool_)) == "1e"
    assert runs(np.ones((2, 2), dtype=np.bool_)) == "0 4"

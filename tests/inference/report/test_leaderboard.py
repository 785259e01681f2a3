"""Scores over windows: decay is said when it is there, and not when only the weeks differ."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from support.browser import browser, missing
from support.evaluation import benchmark_of, box_mask, predict

from engine.core.errors import ConfigError
from engine.core.schema import Prediction, ScoreReport, Window
from inference.benchmarks.base import TruthMask
from inference.metrics.score import score
from inference.report.leaderboard import write_leaderboard
from inference.report.publish import publish, read_published
from inference.report.trends import after_cutoff, trends

SAMPLES = 60


def window(week: int) -> Window:
    first = date(2026, 1, 5) + timedelta(days=7 * week)
    return Window(first=first, last=first + timedelta(days=6))


def week_report(week: int, shares: dict[str, float], *, hard: float = 0.0, convention: str = "lisa") -> ScoreReport:
    """A week whose segmenters meet the given share of a 40 pixels wide target, with noise and a week's difficulty."""
    rng = np.random.default_rng(week)
    truth = box_mask(10, 40, (0, 0, 40, 10))
    names = [f"w{week:02d}s{n:03d}" for n in range(SAMPLES)]
    shared = rng.normal(scale=0.1, size=SAMPLES)

    def predictions(name: str, share: float) -> list[Prediction]:
        found = []
        for place, identity in enumerate(names):
            met = share - hard + shared[place] + rng.normal(scale=0.05)
            edge = int(np.clip(round(40 * met), 1, 40))
            found.append(predict(identity, [box_mask(10, 40, (0, 0, edge, 10))], segmenter=name))
        return found

    bench = replace(
        benchmark_of({name: [TruthMask(truth)] for name in names}, name=window(week).name), window=window(week).label
    )
    given = {name: predictions(name, share) for name, share in shares.items()}
    cut = {"fading": "2026-02-01"}
    report = score(bench, given, resamples=100, cutoffs={name: day for name, day in cut.items() if name in given})
    return report.model_copy(update={"convention": convention})


@pytest.fixture(scope="module")
def reports() -> list[ScoreReport]:
    hard = [0.0, 0.2, 0.05, 0.1, 0.25, 0.0, 0.15, 0.3]
    found = []
    for week, difficulty in enumerate(hard):
        shares = {"anchor": 0.8, "steady": 0.7, "fading": 0.75 - 0.02 * week}
        if week < 3:
            shares["old"] = 0.5
        found.append(week_report(week, shares, hard=difficulty))
    return found


def test_decay_is_told_from_hard_weeks(reports: list[ScoreReport]) -> None:
    found = {one.segmenter: one for one in trends(reports, ["anchor"])}
    assert found["fading"].verdict == "decay"
    assert found["fading"].change.value == pytest.approx(-0.08, abs=0.02)
    assert found["steady"].verdict == "no change shown"
    assert found["steady"].early.value == pytest.approx(-0.1, abs=0.02)
    assert "3 windows with the anchors, 8 are needed" in found["old"].verdict
    # without anchors the weeks themselves would look like decay
    assert {one.verdict for one in trends(reports, [])} == {"no anchors are named"}


def test_figures_after_a_cutoff(reports: list[ScoreReport]) -> None:
    late = after_cutoff(reports, "fading", date(2026, 2, 1))
    rows = [one.row("fading").value("giou") for one in reports[4:]]
    # weeks of equal size: pooling over pairs is the mean of the weeks
    assert late.value == pytest.approx(np.mean([value for value in rows if value is not None]))
    assert after_cutoff(reports, "fading", date(2026, 12, 1)).value is None
    ciou = after_cutoff(reports, "fading", date(2026, 2, 1), metric="ciou").value
    assert ciou == pytest.approx(late.value, abs=1e-9)


def test_files(reports: list[ScoreReport], tmp_path: Path) -> None:
    board = write_leaderboard(reports, tmp_path, anchors=["anchor"], retired={"old": "its endpoint was closed"})
    found = json.loads(board.json.read_text())
    assert found["windows"][0] == "260105_260111"
    assert {row["segmenter"] for row in found["rows"]} == {"anchor", "steady", "fading", "old"}
    assert found["cutoffs"] == {"fading": "2026-02-01"}
    text = board.markdown.read_text()
    for part in ("old (retired)", "its endpoint was closed", "anchor (anchor)", "decay", "no change shown"):
        assert part in text
    page = board.html.read_text()
    assert "knowledge cut-off of fading" in page
    assert 'title="its endpoint was closed"' in page
    again = write_leaderboard(
        list(reversed(reports)), tmp_path / "b", anchors=["anchor"], retired={"old": "its endpoint was closed"}
    )
    assert again.html.read_bytes() == board.html.read_bytes()


def test_reports_must_go_together(reports: list[ScoreReport], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="several reports of 260105_260111"):
        write_leaderboard([reports[0], reports[0]], tmp_path)
    other = reports[1].model_copy(update={"convention": "gres"})
    with pytest.raises(ConfigError, match="gres, lisa"):
        write_leaderboard([reports[0], other], tmp_path)
    with pytest.raises(ConfigError, match="no report"):
        write_leaderboard([], tmp_path)
    with pytest.raises(ConfigError, match="not a date"):
        write_leaderboard(reports, tmp_path, knowledge={"anchor": "last year"})


def test_published_run_is_read_again(tmp_path: Path) -> None:
    truth = box_mask(10, 40, (0, 0, 20, 10))
    bench = benchmark_of({name: [TruthMask(truth)] for name in "abc"})
    name = "rose:x/y"
    given = {name: [predict(identity, [truth], segmenter=name) for identity in "abc"]}
    report = score(bench, given, resamples=20)
    publish(report, given, tmp_path)
    found = read_published(tmp_path)
    assert found.report == report
    assert score(bench, found.predictions(), resamples=20) == report
    (tmp_path / "predictions" / "rose+x_y.parquet").unlink()
    with pytest.raises(ConfigError, match="no predictions of rose:x/y"):
        read_published(tmp_path)
    with pytest.raises(ConfigError, match="no report at"):
        read_published(tmp_path / "nowhere")


def test_a_line_ends_where_nothing_was_measured_and_the_newest_window_comes_first(
    reports: list[ScoreReport], tmp_path: Path
) -> None:
    told = {window(4).label: "the annotator became another"}
    page = write_leaderboard(reports, tmp_path, anchors=["anchor"], shifts=told).html.read_text()
    assert len(re.findall(r'points="([^"]+)"><title>old</title>', page)[0].split()) == 3
    assert len(re.findall(r"<title>steady</title>", page)) == 1
    # a blank between two windows: two lines, and no stroke over what nobody measured
    without = [*reports[:3], week_report(3, {"anchor": 0.8}), *reports[4:]]
    page = write_leaderboard(without, tmp_path, anchors=["anchor"], shifts=told).html.read_text()
    runs = [run.split() for run in re.findall(r'points="([^"]+)"><title>steady</title>', page)]
    assert [len(run) for run in runs] == [3, 4]
    assert "<title>the annotator became another</title>" in page
    heads = re.findall(r">(\d{6}_\d{6})</button>", page)
    assert heads == sorted(heads, reverse=True)


@pytest.mark.system
@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")
def test_two_years_of_windows_can_be_read(reports: list[ScoreReport], tmp_path: Path) -> None:
    """Dates stand apart, every line has its own stroke in the legend, names stay beside the figures."""
    many = []
    for week in range(100):
        report = reports[week % 8]
        many.append(report.model_copy(update={"window": window(week).label}))
    board = write_leaderboard(many, tmp_path / "board", anchors=["anchor"])
    with browser(tmp_path) as page:
        page.open(board.html)
        assert page.log() == []
        places = page.run(
            "return [...document.querySelectorAll('.chart text[text-anchor=middle]')].map(t => {"
            "const r = t.getBoundingClientRect(); return [r.left, r.right]; }).sort((a, b) => a[0] - b[0])"
        )
        assert 5 <= len(places) <= 8
        assert all(left[1] + 4 < right[0] for left, right in itertools.pairwise(places))
        strokes = page.run("return [...document.querySelectorAll('.legend line')].map(l => l.outerHTML)")
        assert len(set(strokes)) == len(strokes) == 4
        left = page.run(
            "const box = document.querySelector('.scroll'); box.scrollLeft = 4000;"
            "const cell = box.querySelector('tbody th'); return [box.scrollLeft, cell.getBoundingClientRect().left,"
            " box.getBoundingClientRect().left]"
        )
        assert left[0] == 4000
        assert left[1] == pytest.approx(left[2], abs=1)
        page.picture(tmp_path / "board.png")

"""`nest compare`: two configurations on one window of the sample week; the shift is kept and shown."""

import json
from pathlib import Path

import pytest
from support.week import WINDOW, Week

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.core.schema import Estimate, ScoreReport, ScoreRow, SegmenterInfo, TruthInfo
from engine.core.store import Home
from engine.core.windows import parse_window
from flows.compare import _difference, changes, compare
from flows.run import Run
from flows.shifts import ScoreShift, Shift, read_shifts
from inference.report.leaderboard import write_leaderboard

SHIFT = Shift(
    window="261116_261122",
    first="a",
    second="b",
    changes=("ask.writer: template -> llm",),
    yields={"masks": (33, 30)},
    agreement={"mean_iou": 0.9},
    scores=(
        ScoreShift(
            segmenter="lisa",
            first=Estimate(value=0.4, low=0.3, high=0.5),
            second=Estimate(value=0.45, low=0.35, high=0.55),
            difference=Estimate(value=0.05, low=-0.09, high=0.19),
        ),
    ),
)


def _run(home: Path, **sections: object) -> Run:
    return Run(Config.model_validate({"home": str(home), **sections}), Home(home), parse_window("261116_261122"))


@pytest.mark.slow
def test_two_annotators_on_one_window(tmp_path: Path) -> None:
    with Week(tmp_path, writer="template", overrides={"collect.limit": 6, "score.segmenters": ["portable"]}) as week:
        text = (tmp_path / "nest.toml").read_text()
        (tmp_path / "changed.toml").write_text(text.replace("[annotate]\n", "[annotate]\nmin_stability = 0.97\n"))
        words = ("compare", WINDOW, "--config", "nest.toml", "changed.toml")
        told = json.loads(week.nest(*words, "--json").stdout)
        assert told["changes"] == ["annotate.min_stability: 0.7 -> 0.97"]
        first, second = told["yields"]["masks"]
        assert 0 <= second < first
        assert told["yields"]["mask_unstable"] == [0, first - second]
        assert told["agreement"]["masks_first_only"] == first - second
        assert told["agreement"]["masks_second_only"] == 0
        if second:
            assert told["agreement"]["same_entity"] == told["agreement"]["mean_iou"] == 1.0
            assert told["scores"][0]["segmenter"] == "portable"
        (kept,) = read_shifts(week.home)
        assert kept.window == WINDOW
        # neither took the window's own place, and nothing is made twice
        assert not list((week.home / "snapshots").glob("NEST_*")) if (week.home / "snapshots").is_dir() else True
        before = {path: path.stat().st_mtime_ns for path in week.home.rglob("manifest.json")}
        plain = week.nest(*words).stdout
        assert "same entity" in plain or not second
        assert {path: path.stat().st_mtime_ns for path in week.home.rglob("manifest.json")} == before
        assert "is both configurations" in week.nest(*words[:-1], "nest.toml", code=2).stderr
        (tmp_path / "same.toml").write_text(text + "# the same\n")
        assert "nothing is to be compared" in week.nest(*words[:-1], "same.toml", code=2).stderr
        # with the first one's snapshot in place, a configuration that gives no rows has no score
        week.nest("snapshot", "--window", WINDOW)
        (tmp_path / "none.toml").write_text(text.replace("[annotate]\n", "[annotate]\nmin_area_share = 0.89\n"))
        nothing = json.loads(week.nest(*words[:-1], "none.toml", "--json").stdout)
        assert nothing["yields"]["masks"] == [first, 0]
        (score,) = nothing["scores"]
        assert score["first"]["value"] is not None
        assert score["second"]["value"] is score["difference"]["value"] is None


def test_what_differs_is_named_and_what_changes_no_result_is_not(tmp_path: Path) -> None:
    old = _run(tmp_path, ask={"prompt": "write_v1"}, llm={"model": "a", "max_in_flight": 2})
    new = _run(tmp_path, ask={"prompt": "write_v2"}, llm={"model": "b", "max_in_flight": 9})
    assert list(changes(old, new)) == ["ask.prompt: write_v1 -> write_v2", "llm.model: a -> b"]


def test_two_homes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="different homes"):
        compare(_run(tmp_path / "a"), _run(tmp_path / "b"))


def test_the_differences_interval_is_that_of_independent_figures() -> None:
    found = _difference(Estimate(value=0.4, low=0.3, high=0.5), Estimate(value=0.5, low=0.4, high=0.6))
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1 - 0.02**0.5)
    assert found.high == pytest.approx(0.1 + 0.02**0.5)
    assert _difference(Estimate(value=None), found).value is None
    assert _difference(Estimate(value=0.2), Estimate(value=0.3)).low is None


def test_the_shift_is_kept_and_stands_in_the_leaderboard(tmp_path: Path) -> None:
    (tmp_path / "shifts").mkdir()
    (tmp_path / "shifts" / "x.json").write_text(SHIFT.line())
    (tmp_path / "shifts" / "broken.json").write_text("{")
    (kept,) = read_shifts(tmp_path)
    assert kept == SHIFT
    told = "261116_261122: ask.writer: template -> llm; shift of gIoU in points: lisa +5.0 (-9.0 to +19.0)"
    assert kept.sentence() == told
    report = ScoreReport(
        dataset="NEST_261116_261122",
        window="261116_261122",
        convention="lisa",
        truths=(TruthInfo(name="snapshot"),),
        segmenters=(SegmenterInfo(name="lisa"),),
        rows=(
            ScoreRow(
                segmenter="lisa",
                truth="snapshot",
                samples=1,
                units=1,
                scored=1,
                figures={"giou": Estimate(value=0.4, low=0.3, high=0.5)},
            ),
        ),
    )
    board = write_leaderboard([report], tmp_path / "out", shifts={kept.window: kept.sentence()})
    assert f"change of the pipeline, {told}" in board.markdown.read_text()
    assert "template -&gt; llm" in board.html.read_text()
    assert json.loads(board.json.read_text())["shifts"] == {kept.window: told}

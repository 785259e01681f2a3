"""Scores of whole benchmarks: the stored cases, hand-computed ones, and what does not fit."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from support.evaluation import benchmark_of, box_mask, predict

from engine.core.errors import ConfigError
from engine.core.schema import Prediction, ScoreReport
from inference.benchmarks.base import TruthMask
from inference.metrics.conventions import gres
from inference.metrics.score import score
from inference.metrics.units import Units

CASES = Path(__file__).parents[2] / "data" / "cases"


def edges() -> tuple[dict[str, list[TruthMask]], dict[str, np.ndarray]]:
    with np.load(CASES / "48-iou-edges" / "masks.npz") as stored:
        truths = {f"s{n}": stored[f"gt_s{n}"] for n in range(1, 8)}
        predicted = {f"s{n}": stored[f"pred_s{n}"] > 0 for n in range(1, 8)}
    return {name: [TruthMask(mask == 1, mask == 255)] for name, mask in truths.items()}, predicted


def test_case_of_iou_edges() -> None:
    truths, predicted = edges()
    expected = json.loads((CASES / "48-iou-edges" / "expected.json").read_text())
    report = score(
        benchmark_of(truths), {"model": [predict(name, [mask]) for name, mask in predicted.items()]}, resamples=200
    )
    row = report.row("model")
    assert row.value("giou") == pytest.approx(expected["giou"], abs=1e-12)
    assert row.value("ciou") == pytest.approx(expected["ciou"], abs=1e-12)
    units = report.units[0]
    for place, sample in enumerate(report.samples):
        assert [units.intersection[place], units.union[place]] == expected["per_sample"][sample.id]
    # the published evaluator's own figures: both-empty dropped, 255 taken as the object
    assert row.value("seg-zero:giou") is not None
    assert row.value("seg-zero:giou") != row.value("giou")


def test_seg_zero_drops_empty_pairs_and_takes_ignored_pixels_as_object() -> None:
    truths, predicted = edges()
    given = {"model": [predict(name, [mask]) for name, mask in predicted.items()]}
    wrong = []
    for name, (truth,) in truths.items():
        whole = truth.mask | (truth.ignore if truth.ignore is not None else False)
        union = np.count_nonzero(whole | predicted[name])
        if union:
            wrong.append(np.count_nonzero(whole & predicted[name]) / union)
    row = score(benchmark_of(truths), given, convention="seg-zero", resamples=50).row("model")
    assert len(wrong) == 6
    assert row.value("giou") == pytest.approx(sum(wrong) / 6, abs=1e-12)


def test_case_of_no_target() -> None:
    samples = json.loads((CASES / "50-no-target" / "samples.json").read_text())
    expected = json.loads((CASES / "50-no-target" / "expected.json").read_text())
    inter = np.array([one["raw_intersection"] for one in samples])
    union = np.array([one["raw_union"] for one in samples])
    absent = np.array([one["gt_no_target"] for one in samples])
    said = np.array([one["pred_no_target"] for one in samples])
    # any split of the union into target and prediction serves: the rule sees only whether a target is there
    target = np.where(absent, 0, np.maximum(inter, union // 2))
    zeros = np.zeros(len(samples), dtype=np.int64)
    units = Units(
        sample=np.arange(len(samples)),
        image=zeros,
        status=zeros,
        failure=zeros - 1,
        intersection=inter,
        target=target,
        predicted=union - target + inter,
        ignored=zeros,
        predicted_ignored=zeros,
        pixels=zeros + 10_000,
        said_none=said,
        first=np.ones(len(samples), dtype=np.bool_),
        correct=np.full(len(samples), np.nan),
        f1=np.full(len(samples), np.nan),
        judged=np.full(len(samples), np.nan),
    )
    found = gres(units)
    assert found.iou.mean() == pytest.approx(expected["giou"], abs=1e-12)
    assert found.intersection.sum() / found.union.sum() == pytest.approx(expected["ciou"], abs=1e-12)
    from inference.metrics.builtin import n_acc, t_acc

    for function, name in ((n_acc, "n_acc"), (t_acc, "t_acc")):
        terms = function(found)
        assert terms.top.sum() / terms.bottom.sum() == pytest.approx(expected[name], abs=1e-12)


def test_all_absent_gives_no_ciou_and_full_giou() -> None:
    empty = box_mask(8, 8, (0, 0, 0, 0))
    report = score(
        benchmark_of({"a": [TruthMask(empty)], "b": [TruthMask(empty)]}),
        {"model": [predict("a", [empty]), predict("b", [empty])]},
        convention="gres",
        resamples=50,
    )
    row = report.row("model")
    assert row.value("giou") == 1.0
    assert row.figures["ciou"].value is None
    assert json.loads(report.line())["rows"][0]["figures"]["ciou"]["value"] is None


def test_failures_and_missing_predictions_stand_apart() -> None:
    truth = box_mask(10, 10, (0, 0, 5, 10))
    truths = {name: [TruthMask(truth)] for name in "abcd"}
    report = score(
        benchmark_of(truths),
        {"model": [predict("a", [truth]), predict("b", [~truth]), predict("c", [None], kind="timeout")]},
        resamples=50,
    )
    row = report.row("model")
    assert (row.units, row.scored, row.failed, row.missing) == (4, 2, 1, 1)
    assert row.failures == {"timeout": 1}
    assert row.value("giou") == 0.5
    assert row.value("ciou") == 50 / 150
    assert row.strict["giou"].value == 0.25
    assert row.strict["ciou"].value == 50 / 250
    assert report.units[0].status == ("scored", "scored", "failed", "missing")
    assert report.units[0].iou == (1.0, 0.0, None, None)
    assert any("timeout" in warning for warning in report.warnings)


def test_what_does_not_fit_is_one_error_with_all_ids() -> None:
    truth = box_mask(20, 30, (0, 0, 5, 10))
    truths = {name: [TruthMask(truth)] for name in "abc"}
    predictions = [
        predict("a", [box_mask(30, 20, (0, 0, 5, 10))]),
        predict("b", [truth, truth]),
        predict("zz", [truth]),
        predict("c", [truth]),
        predict("c", [truth]),
        predict("yy", [truth], segmenter="other"),
    ]
    with pytest.raises(ConfigError) as caught:
        score(benchmark_of(truths), {"model": predictions})
    text = str(caught.value)
    for part in ("a, image 0: the mask is 20x30", "the image 30x20", "b has 2 masks for 1 images"):
        assert part in text
    for part in ("no sample has the id zz", "two predictions for c", "another segmenter's"):
        assert part in text


def test_order_of_predictions_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    truths = {f"s{n:02d}": [TruthMask(rng.random((9, 11)) > 0.5)] for n in range(40)}
    given = [predict(name, [rng.random((9, 11)) > 0.4]) for name in truths if name not in ("s07", "s39")]
    expected = score(benchmark_of(truths), {"model": given}, resamples=50)
    for seed in range(4):
        shuffled = list(given)
        random.Random(seed).shuffle(shuffled)
        assert score(benchmark_of(truths), {"model": shuffled}, resamples=50) == expected
    assert expected.row("model").missing == 2


def test_baselines_and_their_warning() -> None:
    truth = box_mask(10, 20, (0, 0, 10, 10))
    report = score(
        benchmark_of({name: [TruthMask(truth)] for name in "abcdef"}),
        {"model": [predict(name, [np.ones((10, 20), dtype=np.bool_)]) for name in "abcdef"]},
        resamples=50,
    )
    assert report.row("all-empty").value("giou") == 0.0
    assert report.row("whole-image").value("giou") == 0.5
    random_box = report.row("random-box").value("giou")
    assert random_box is not None
    assert 0 < random_box < 1
    assert any("as whole-image does" in warning for warning in report.warnings)


def test_second_truth_and_parts_and_round_trip() -> None:
    left, right = box_mask(10, 20, (0, 0, 10, 10)), box_mask(10, 20, (10, 0, 20, 10))
    truths = {name: [TruthMask(left)] for name in "abcd"}
    tags = {name: {"domain": "Sports" if name in "ab" else "Politics", "novelty:tiny": "novel"} for name in "abcd"}
    report = score(
        benchmark_of(truths, tags=tags, answers=dict.fromkeys("abcd", ("Ada Lovelace", "Ada"))),
        {
            "model": [predict(name, [left], answer="ada" if name == "a" else "Bob") for name in "abcd"],
            "other": [predict(name, [right], segmenter="other") for name in "abcd"],
        },
        truths={"known": {"a": [right], "b": [right], "c": [left]}},
        descriptions={"snapshot": "made by the annotator", "known": "true by construction"},
        resamples=50,
    )
    assert report.row("model").value("giou") == 1.0
    assert report.row("model").value("accuracy") == 0.25
    assert "accuracy" not in report.row("other").figures
    assert report.row("model", truth="known").units == 3
    assert report.row("model", truth="known").value("giou") == pytest.approx(1 / 3)
    assert report.row("model", split="domain", part="Sports").samples == 2
    assert report.row("model", truth="known", split="domain", part="Sports").value("giou") == 0.0
    assert report.base_model == "tiny"
    compared = {(one.truth, one.metric): one for one in report.comparisons}
    assert compared["snapshot", "giou"].difference.value == -1.0
    assert ScoreReport.read(json.loads(report.line())) == report


def test_paired_interval_excludes_zero_only_for_a_real_gain() -> None:
    rng = np.random.default_rng(0)
    truths = {f"s{n:03d}": [TruthMask(box_mask(20, 20, (0, 0, 10, 20)))] for n in range(60)}

    def noisy(share: float, name: str) -> list[Prediction]:
        found = []
        for identity in truths:
            edge = int(np.clip(rng.normal(share, 2), 1, 10))
            found.append(predict(identity, [box_mask(20, 20, (0, 0, edge, 20))], segmenter=name))
        return found

    report = score(benchmark_of(truths), {name: noisy(mean, name) for name, mean in (("c", 5), ("b", 5), ("a", 8))})
    compared = {(one.first, one.second): one for one in report.comparisons if one.metric == "giou"}
    gain = compared["a", "b"]
    assert gain.difference.low is not None
    assert gain.difference.low > 0
    assert gain.p_value is not None
    assert gain.p_value < 0.01
    level = compared["b", "c"].difference
    assert level.low is not None
    assert level.high is not None
    assert level.low < 0 < level.high


def test_no_predictions_and_bad_names() -> None:
    truths = {"a": [TruthMask(box_mask(4, 4, (0, 0, 2, 2)))]}
    with pytest.raises(ConfigError, match="no predictions"):
        score(benchmark_of(truths), {})
    with pytest.raises(ConfigError, match="baseline"):
        score(benchmark_of(truths), {"all-empty": []})
    with pytest.raises(ConfigError, match="snapshot"):
        score(benchmark_of(truths), {"model": []}, truths={"snapshot": {}})

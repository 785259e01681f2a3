"""Quoting a score and checking a quoted one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.evaluation import benchmark_of, box_mask, predict

from engine.core.errors import ConfigError
from engine.core.schema import Prediction
from inference.benchmarks.base import Benchmark, TruthMask
from inference.metrics.score import score
from inference.metrics.scorestring import parse
from inference.report.cite import bibtex, latex, methods, replay
from inference.report.quoted import paper, quoted_rows

TRUTH = box_mask(20, 30, (2, 2, 12, 12))


def bench(names: str = "abcdef") -> Benchmark:
    return benchmark_of({name: [TruthMask(TRUTH)] for name in names})


def predictions(names: str = "abcdef") -> dict[str, list[Prediction]]:
    return {
        "my_model": [
            predict(name, [np.roll(TRUTH, place, axis=1)], segmenter="my_model") for place, name in enumerate(names)
        ]
    }


def test_score_string_says_what_was_scored() -> None:
    report = score(bench(), predictions(), convention="gres", size_px=480, seed=7, novelty_model="m/1", resamples=20)
    found = parse(report.score_string)
    assert (found.dataset, found.revision, found.convention) == ("NEST_261109_261115", "r1", "gres")
    assert (found.size_px, found.seed, found.base_model) == (480, 7, "m/1")
    assert bench().digest.startswith(found.digest)
    for text in (
        "",
        "nest1|data=x",
        "nest2|data=x|sha256=1|convention=lisa",
        "nest1|data=x|sha256=1|convention=a|seed=b",
    ):
        with pytest.raises(ConfigError, match="no score string"):
            parse(text)


def test_methods_latex_and_bibtex() -> None:
    report = score(bench(), predictions(), resamples=50)
    text = methods(report)
    for part in (report.score_string, "6 samples with 6 (image, mask) pairs", "'lisa'", "50 resamples"):
        assert part in text
    table = latex(report, quoted=True)
    assert r"my\_model" in table
    assert "LISA-7B + ROSE (quoted)" in table
    assert table.count(r"\\") == 1 + 4 + len(quoted_rows("1"))
    columns = re.search(r"\\begin{tabular}{(\w+)}", table)
    assert columns is not None
    for line in table.splitlines():
        if line.endswith(r"\\"):
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns[1]) - 1
    entries = bibtex(report)
    assert paper()["arxiv"] in entries
    assert entries.count("@") == 2
    assert entries.count("{") == entries.count("}")


def test_replay_gives_the_same_digits() -> None:
    report = score(bench(), predictions(), resamples=50)
    again = replay(report.score_string, report, bench(), predictions())
    assert again.differences == ()
    assert again.removed == ()
    assert again.report == report


def test_replay_names_removed_rows_and_other_data() -> None:
    report = score(bench(), predictions(), resamples=50)
    again = replay(report.score_string, report, bench("abcde"), predictions())
    assert again.removed == ("f",)
    assert any("my_model giou" in text for text in again.differences)
    changed = benchmark_of({name: [TruthMask(TRUTH)] for name in "abcdef"})
    from dataclasses import replace

    with pytest.raises(ConfigError, match="digest"):
        replay(report.score_string, report, replace(changed, digest="cd" * 32), predictions())
    with pytest.raises(ConfigError, match="not of"):
        replay("nest1|data=x|sha256=1|convention=lisa", report, bench(), predictions())


def test_quoted_tables_are_the_papers() -> None:
    rows = {row.method: row for row in quoted_rows("1")}
    assert rows["LISA-7B"].figures == {"novel": (38.4, 28.5), "emerging": (56.5, 47.5), "overall": (48.7, 39.3)}
    assert rows["LISA-7B + ROSE"].accuracy == 73.4
    gap = rows["LISA-7B + ROSE"].figures["overall"][0], rows["LISA-7B + Gemini-2.0 Flash Search"].figures["overall"][0]
    assert gap[0] is not None
    assert gap[1] is not None
    # the abstract's own claim
    assert gap[0] - gap[1] == pytest.approx(19.2)
    assert [len(quoted_rows(table)) for table in ("1", "2", "3")] == [9, 7, 5]
    assert set(quoted_rows("2")[0].figures) == {"NEST", "ReasonSeg", "RefSeg", "overall"}

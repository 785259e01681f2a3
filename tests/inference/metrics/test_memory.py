"""A report of many samples: what it holds per sample, and that its bytes are those of the plain record."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from engine.core.masks import encode_rle
from engine.core.schema import PackedTexts, Prediction, SampleText, ScoreReport, canonical_json
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask
from inference.metrics.score import score
from inference.report.publish import read_report, write_report

MASK = np.zeros((16, 16), dtype=np.bool_)
MASK[2:9, 3:11] = True
MOVED = encode_rle(np.roll(MASK, 2, axis=1))


def _benchmark(count: int) -> Benchmark:
    def read(images: bool) -> Iterator[BenchmarkSample]:
        for index in range(count):
            yield BenchmarkSample(
                id=f"s{index:07d}",
                question=f"Which one of the {index} “is” it?",
                answer=f"number {index}",
                encoded=tuple,
                decode_masks=lambda: (TruthMask(MASK.copy()),),
                tags={"domain": f"d{index % 5}", "publisher": f"p{index % 30}"},
                image_keys=(f"{index % 100:016x}",),
            )

    return Benchmark("many", "", "0" * 64, count, read)


def _predictions(count: int) -> Iterator[Prediction]:
    for index in range(count):
        if index % 7:
            yield Prediction(sample_id=f"s{index:07d}", segmenter="model", masks=(MOVED,), answer=f"number {index % 9}")


def _report(count: int) -> ScoreReport:
    return score(_benchmark(count), {"model": _predictions(count)}, resamples=50)


def _peak_bytes(count: int) -> int:
    """The most that scoring and writing hold at a time."""
    tracemalloc.start()
    try:
        report = _report(count)
        size = sum(len(piece) for piece in report.pieces())
        assert size > 100 * count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_by_less_than_a_kilobyte_per_sample() -> None:
    """Objects per sample and the text as one string took twice as much. What is left are whole numbers per pair
    (truth, segmenter, three baselines), verdicts per answer, and the texts' own bytes."""
    _report(10)  # imports
    few, many = 1000, 5000
    assert (_peak_bytes(many) - _peak_bytes(few)) / (many - few) < 1000


def test_the_pieces_are_the_record_as_any_other(tmp_path: Path) -> None:
    report = _report(40)
    plain = canonical_json(report.model_dump(mode="json"))
    assert report.line() == plain
    write_report(report, tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == plain + "\n"
    assert read_report(tmp_path / "report.json") == report


def test_packed_samples_are_a_sequence_of_samples() -> None:
    one, two = SampleText(id="a", question="Who “?”", tags={"x": "1"}), SampleText(id="b", question="", cluster=3)
    packed = PackedTexts([one, two])
    assert (list(packed), len(packed), packed[1], packed[-1], packed[:1]) == ([one, two], 2, two, two, (one,))
    assert packed == (one, two)
    assert packed == PackedTexts(iter((one, two)))
    assert packed != (two, one)
    with pytest.raises(IndexError):
        packed[2]


def test_samples_that_do_not_fit_are_refused_where_they_stand() -> None:
    raw = _report(5).model_dump(mode="json")
    assert ScoreReport.read(raw).samples[4].question == "Which one of the 4 “is” it?"
    raw["samples"][3]["cluster"] = "x"
    with pytest.raises(ValidationError) as caught:
        ScoreReport.read(raw)
    assert caught.value.errors()[0]["loc"][:3] == ("samples", 3, "cluster")

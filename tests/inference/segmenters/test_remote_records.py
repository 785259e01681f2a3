"""Answers of remote segmenters written down: repeated without the server, not asked twice of one that names itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.segmenter_server import helper, running

from engine.core.config import Config, ScoreSection
from engine.core.errors import TransientError
from engine.core.protocols import EvalItem, SegmentRequest, SegmentResult
from engine.web.search.record import Records
from inference import predict
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make
from inference.segmenters.remote import Remote

RED = np.full((12, 20, 3), (200, 20, 20), np.uint8)
HALF = RED.copy()
HALF[:, 10:] = 30
REQUESTS = [SegmentRequest(RED, "the sail"), SegmentRequest(HALF, "the sail"), SegmentRequest(HALF, "nobody")]


@dataclass
class Model:
    """Counts what it is asked; fails for "nobody" until it is well."""

    asked: list[str] = field(default_factory=list)
    well: bool = False

    def __call__(self, _: object, image: np.ndarray, prompt: str) -> tuple[np.ndarray, str, float]:
        self.asked.append(prompt)
        if prompt == "nobody" and not self.well:
            raise MemoryError("out of memory")
        return image[..., 0] > 100, f"I see {prompt}", 0.5


@contextmanager
def serving(model: Model, **info: str) -> Iterator[str]:
    with running(helper().make_server(None, model, {"name": "reds", **info}, 0)) as url:
        yield url


def told(results: list[SegmentResult]) -> list[object]:
    return [(None if one.mask is None else one.mask.tobytes(), one.failure, one.text, one.score) for one in results]


def test_a_finished_run_is_repeated_without_the_server(tmp_path: Path) -> None:
    model, records = Model(), Records(tmp_path)
    with serving(model) as url:
        first = Remote(url, records=records)
        found = first.segment(REQUESTS)
    again = Remote(url, records=records, offline=True)
    assert told(again.segment(REQUESTS)) == told(found)
    assert (again.name, again.models(), again.wording()) == (first.name, first.models(), first.wording())
    assert found[2].failure is not None
    with pytest.raises(TransientError, match="offline, and remote:reds was never asked 'the mast'"):
        again.segment([SegmentRequest(RED, "the mast")])
    with pytest.raises(TransientError, match="was never asked: go online once"):
        Remote("http://127.0.0.1:9", records=records, offline=True)


def test_only_a_server_that_names_its_version_is_not_asked_twice(tmp_path: Path) -> None:
    for info, twice in (({"version": "3"}, ["nobody"]), ({"weights_sha256": "ab"}, ["nobody"]), ({}, None)):
        model, records = Model(), Records(tmp_path / str(len(info)) / "".join(info))
        with serving(model, **info) as url:
            first = Remote(url, records=records).segment(REQUESTS)
            before = list(model.asked)
            model.well = True
            second = Remote(url, records=records).segment(REQUESTS)
        # a failure is asked for again: it may have passed
        assert model.asked[len(before) :] == (twice if twice is not None else before)
        assert told(first)[:2] == told(second)[:2]
        assert second[2].mask is not None


def test_another_version_is_another_segmenter(tmp_path: Path) -> None:
    model, records = Model(well=True), Records(tmp_path)
    for version in ("1", "2"):
        with serving(model, version=version) as url:
            Remote(url, records=records).segment(REQUESTS[:2])
    assert len(model.asked) == 4


async def test_by_name_through_the_config(tmp_path: Path) -> None:
    model, item = Model(well=True), EvalItem("s", "Which person won?", (RED, HALF))
    deps = InferenceDeps(records=tmp_path)

    async def lines(config: Config) -> list[str]:
        runner = make("cris", config, deps=deps)
        found, _ = await predict.run([item], config.score, deps=predict.PredictDeps(runner))
        return [one.line() for one in found]

    with serving(model, version="1") as url:
        first = await lines(Config(score=ScoreSection(endpoints={"cris": url})))
    again = await lines(Config(score=ScoreSection(endpoints={"cris": url}, offline=True)))
    assert again == first
    assert len(model.asked) == 2

"""A snapshot from a Hub, over HTTP: pinned, cached, and the same as the folder it was pushed from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import snapshots
from support.evaluation import predict
from support.hub import LoopbackHub

from engine.core.errors import ConfigError, TransientError
from engine.snapshot.hub import push
from inference.benchmarks.nest import load
from inference.metrics.score import score

REPO = f"news/{snapshots.WINDOW.name}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 3)
    return found


@pytest.fixture
def hub(folder: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        push(folder, repo="news/{name}", token=found.token, endpoint=found.endpoint)
        yield found


def test_a_pushed_snapshot_is_the_folder(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    local = load(folder)
    remote = load(f"{REPO}@r1", endpoint=hub.endpoint, cache_dir=tmp_path)
    assert (remote.name, remote.digest, len(remote)) == (local.name, local.digest, len(local))
    assert remote.origin == REPO
    assert len(remote.revision) == 40
    for one, other in zip(remote, local, strict=True):
        assert (one.id, one.question, one.aliases, one.tags) == (other.id, other.question, other.aliases, other.tags)
        assert one.blocked == other.blocked
        assert one.blocked
        assert np.array_equal(one.images()[0], other.images()[0])
        assert np.array_equal(one.masks()[0].mask, other.masks()[0].mask)
    given = {"model": [predict(one.id, [one.masks()[0].mask]) for one in remote]}
    report = score(remote, given, resamples=10)
    assert report.row("model").value("giou") == 1.0
    assert f"data={REPO}@{remote.revision}" in report.score_string


def test_what_is_not_there_is_said(hub: LoopbackHub, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no revision r9"):
        load(f"{REPO}@r9", endpoint=hub.endpoint, cache_dir=tmp_path)
    with pytest.raises(ConfigError, match="no dataset news/none"):
        load("news/none", endpoint=hub.endpoint, cache_dir=tmp_path)


def test_a_hub_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="try again later"):
        load(f"{REPO}@r1", endpoint="http://127.0.0.1:9", cache_dir=tmp_path)

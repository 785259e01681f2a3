"""Static files beside the data: only what changed is sent, and faults of the Hub lose and double nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hub import LoopbackHub

from engine.core.errors import ConfigError, TransientError
from engine.snapshot.hub_static import push_static

REPO = "news/scores"


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, data in (("board.html", b"<p>1</p>"), ("published/a/x.parquet", b"PAR1\0" * 50)):
        path = tmp_path / name.replace("/", "_")
        path.write_bytes(data)
        found[name] = path
    return found


def send(hub: LoopbackHub, files: dict[str, Path], **options: object) -> list[str]:
    to = {"repo": REPO, "token": hub.token, "endpoint": hub.endpoint, **options}
    return push_static(files, sleep=lambda seconds: None, **to)  # type: ignore[arg-type]


def test_only_what_changed_is_sent(hub: LoopbackHub, files: dict[str, Path]) -> None:
    assert send(hub, files, private=True) == sorted(files)
    assert hub.repo(REPO).private
    assert send(hub, files) == []
    files["board.html"].write_bytes(b"<p>2</p>")
    assert send(hub, files) == ["board.html"]
    del files["published/a/x.parquet"]
    assert send(hub, files) == []
    assert set(hub.files(REPO)) == {".gitattributes", "board.html", "published/a/x.parquet"}


@pytest.mark.parametrize("fault", [{"status": 504, "after": True}, {"status": 503}, {"status": 412}, {"drop": True}])
def test_faults_that_pass(hub: LoopbackHub, files: dict[str, Path], fault: dict[str, object]) -> None:
    hub.fail("commit", **fault)  # type: ignore[arg-type]
    assert send(hub, files) == sorted(files)
    assert {name: data for name, data in hub.files(REPO).items() if name in files} == {
        name: path.read_bytes() for name, path in files.items()
    }
    assert len(list(hub.repo(REPO).history("main"))) == 2


def test_what_does_not_pass_is_said(hub: LoopbackHub, files: dict[str, Path]) -> None:
    hub.fail("commit", times=9, status=503)
    with pytest.raises(TransientError, match="the push to news/scores failed"):
        send(hub, files)
    hub._faults.clear()
    with pytest.raises(ConfigError, match="HF_TOKEN"):
        send(hub, files, token="hf_wrong", repo="news/other")

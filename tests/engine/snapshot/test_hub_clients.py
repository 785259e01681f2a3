"""The loopback Hub under the real clients in another process, and the check of a revision over the network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import snapshots
from support.hub import LoopbackHub

from engine.core.errors import ConfigError, TerminalError
from engine.snapshot.findings import Kind
from engine.snapshot.hub import push
from engine.snapshot.verify_remote import split_spec, verify_remote

NAME = f"news/{snapshots.WINDOW.name}"

CLIENT = Path(__file__).with_name("use_hub.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 3)
    return found


@pytest.fixture
def hub(folder: Path) -> Iterator[LoopbackHub]:
    # large files come in parts of 20 kB, as the Hub asks for with files of gigabytes
    with LoopbackHub(part_bytes=20_000) as found:
        push(folder, repo="news/{name}", token=found.token, endpoint=found.endpoint)
        yield found


@pytest.mark.slow
def test_the_real_clients_read_and_write(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    env = {**os.environ, **hub.environ(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, str(CLIENT), NAME], env=env, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    out = json.loads(done.stdout.splitlines()[-1])
    assert out["whoami"] == "tester"
    assert out["listed"] == [NAME]
    assert out["tags"] == ["r1"]
    assert set(out["files"]) >= {"README.md", "snapshot.json", "data/train-00000-of-00001.parquet"}
    assert out["columns"] == ["id", "question", "answer", "images", "annotations"]
    assert out["ids"] == out["streamed"]
    assert len(out["ids"]) == 3
    assert out["size"] == [64, 48]
    assert out["joined"]
    assert out["benchmark"]
    assert out["configs"] == ["benchmark", "default", "provenance"]
    assert "data" in out["folder"]
    assert out["bytes"] == (folder / "snapshot.json").stat().st_size
    assert out["errors"] == ["RepositoryNotFoundError", "RemoteEntryNotFoundError", "RevisionNotFoundError"]
    assert out["stale parent"] == 412
    assert out["commits"] == 4
    assert out["pushed"] == [1, 2, 3]
    assert "news/other" not in hub.repos


def test_a_revision_is_checked_over_the_network(hub: LoopbackHub) -> None:
    told = verify_remote(f"{NAME}@r1", token=hub.token, endpoint=hub.endpoint)
    assert told.findings == ()
    assert told.commit == hub.repo(NAME).tags["r1"]
    hub.repo(NAME).commit("main", {"README.md": b"---\nlicense: mit\n---\n# mine\n"}, title="by hand")
    found = verify_remote(NAME, token=hub.token, endpoint=hub.endpoint)
    assert Kind.FILE_CHANGED in {item.kind for item in found.findings}


@pytest.mark.parametrize("spec", ["news/none@r1", f"{NAME}@r9"])
def test_what_is_not_there(hub: LoopbackHub, spec: str) -> None:
    with pytest.raises(TerminalError, match="reading"):
        verify_remote(spec, token=hub.token, endpoint=hub.endpoint)


def test_specs() -> None:
    assert split_spec("a/b@r1") == ("a/b", "r1")
    assert split_spec("a/b") == ("a/b", "main")
    for spec in ("a", "a/b@", "a/b c", ""):
        with pytest.raises(ConfigError):
            split_spec(spec)

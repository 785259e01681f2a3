"""Held-back weeks, and what the Hub is asked for by the status."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hub import LoopbackHub
from support.published import NAME, REPO, WINDOW, Home, everything, save

from engine.snapshot.verdicts import Verdict, append, file_of


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


def test_a_held_week_is_private_until_it_is_released_without_what_the_review_took_out(
    hub: LoopbackHub, tmp_path: Path
) -> None:
    home = Home(tmp_path, hub, "hold = true")
    told = home.nest("push", WINDOW)
    assert f"nest release {WINDOW}" in told.stderr
    assert hub.repo(REPO).private
    row = home.rows()[0]
    manifest = json.loads((home.snapshot / "snapshot.json").read_text())
    said = Verdict(
        snapshot=NAME,
        revision="r1",
        digest=manifest["digest"],
        rows=5,
        sample_id=row.id,
        stratum="random",
        verdict="private_person",
        reviewer="ada",
    )
    append(file_of(home.root, NAME, "ada"), said)
    home.nest("amend", WINDOW, "--from-review")
    home.nest("push", WINDOW)
    assert hub.repo(REPO).private
    assert set(hub.repo(REPO).tags) == {"r1", "r2"}
    assert "would make" in home.nest("release", WINDOW, "--dry-run").stderr
    assert hub.repo(REPO).private
    done = home.nest("release", WINDOW)
    assert "1 of 1 rows drawn at random were wrong" in done.stderr
    assert not hub.repo(REPO).private
    assert set(hub.repo(REPO).tags) == {"r2"}
    assert row.default["images"][0]["bytes"] not in everything(hub, save(hub, tmp_path / "public", "main"))
    assert "was public already" in home.nest("release", WINDOW).stderr
    status = json.loads(home.nest("status", "--json").stdout)
    assert status["hub"]["equal"] is True


def test_hold_refuses_a_public_repository_and_sealed_beside_it(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "")
    home.nest("push", WINDOW)
    assert not hub.repo(REPO).private
    text = (tmp_path / "nest.toml").read_text()
    (tmp_path / "nest.toml").write_text(text + "hold = true\n")
    assert "is public" in home.nest("push", WINDOW, code=4).stderr
    (tmp_path / "nest.toml").write_text(text + "hold = true\nsealed = 52\n")
    assert "choose one" in home.nest("push", WINDOW, code=2).stderr


def test_status_asks_the_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    home = Home(tmp_path, hub, "")
    assert json.loads(home.nest("status", "--json").stdout)["hub"]["equal"] is False
    home.nest("push", WINDOW)
    assert json.loads(home.nest("status", "--json").stdout)["hub"]["equal"] is True
    assert json.loads(home.nest("status", "--json", "--hub").stdout)["hub"]["equal"] is True
    hub.repo(REPO).commit("main", {"data/extra.parquet": b"x"}, title="by hand")
    told = json.loads(home.nest("status", "--json", "--hub").stdout)["hub"]
    assert told["equal"] is False
    assert "1 files differ" in told["note"]

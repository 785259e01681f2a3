"""After a takedown nothing here and nothing the Hub serves holds the picture's bytes, its address or the name."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import snapshots
from support.hub import LoopbackHub
from support.hub_repos import Repo
from support.takedowns import EARLIER, NAME, Place, everything, furnish, grep, names, publish, served, traces

from engine.core.errors import TransientError
from engine.snapshot.manifest import read_manifest
from engine.snapshot.revise import read_rows
from engine.snapshot.takedown import Wish, takedown
from engine.snapshot.verify import verify

AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return furnish(tmp_path_factory.mktemp("template") / "home")


@pytest.fixture(scope="module")
def published(template: Place, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Repo]]:
    """The home and the Hub's repositories after both snapshots were pushed, the later one in two revisions."""
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(template.home, home)
    with LoopbackHub() as hub:
        publish(hub, replace(template, home=home))
        return home, hub.repos


@pytest.fixture
def there(
    published: tuple[Path, dict[str, Repo]], hub: LoopbackHub, template: Place, tmp_path: Path
) -> tuple[Place, dict[str, Any]]:
    """A copy of what was published, on the test's own Hub, and how to reach it."""
    home, repos = published
    shutil.copytree(home, tmp_path / "home")
    hub.repos = copy.deepcopy(repos)
    return replace(template, home=tmp_path / "home"), {"token": hub.token, "endpoint": hub.endpoint}


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("by", ["entity", "image"])
def test_nothing_is_left_here_or_on_the_hub(hub: LoopbackHub, there: tuple[Place, dict[str, Any]], by: str) -> None:
    place, to = there
    row = next(row for row in read_rows(place.later) if row.default["answer"] == NAME)
    wish = {
        "entity": Wish(entities=(NAME,)),
        "image": Wish(images=(row.provenance["image_published_sha256"][0],)),
    }[by]
    looked_for = traces(place) + (names() if by == "entity" else [])
    assert grep(everything(place.home), *looked_for)
    assert grep(served(hub), *looked_for)
    receipt = takedown(place.home, wish, now=AT, **to)
    assert receipt.complete, receipt.failures
    assert grep(everything(place.home), *looked_for) == []
    assert grep(served(hub), *looked_for) == []
    # the row's id stands as a tombstone, and both weeks lost their copy of the picture
    assert row.id in read_manifest(place.later).tombstones
    assert set(receipt.rows) == {EARLIER.name, snapshots.WINDOW.name, f".superseded/{snapshots.WINDOW.name}.r1"}
    assert receipt.files["blobs"] >= 2
    for folder in (place.earlier, place.later):
        assert verify(folder) == []
        repo = hub.repo(f"news/{folder.name}")
        assert len(list(repo.history("main"))) == 1
        assert set(repo.tags.values()) == {repo.branches["main"]}
        files = {name: data for name, data in hub.files(repo.name).items() if name != ".gitattributes"}
        assert files == {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
    assert set(hub.repo(f"news/{snapshots.WINDOW.name}").tags) == {"r1", "r2"}
    # what had nothing to do with it is still there
    assert (place.home / "cache/http/aa/keep.http").exists()
    assert (place.home / "cache/llm/aa/keep.json").exists()
    assert read_manifest(place.later).rows == 6 - len(receipt.rows[snapshots.WINDOW.name])
    if by == "entity":
        # a second time there is nothing to find
        before = dict(everything(place.home / "snapshots"))
        again = takedown(place.home, wish, **to)
        assert again.complete
        assert again.rows == {}
        assert set(again.repositories.values()) == {"nothing of it there"}
        assert dict(everything(place.home / "snapshots")) == before


def test_dry_run_changes_nothing(hub: LoopbackHub, there: tuple[Place, dict[str, Any]]) -> None:
    place, to = there
    before = dict(everything(place.home))
    commits = {name: dict(repo.branches) for name, repo in hub.repos.items()}
    receipt = takedown(place.home, Wish(entities=(NAME,)), dry_run=True, **to)
    assert receipt.rows
    assert receipt.files
    assert dict(everything(place.home)) == before
    assert {name: dict(repo.branches) for name, repo in hub.repos.items()} == commits


def test_a_hub_that_fails_leaves_everything_here_to_try_again(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    wish = Wish(entities=(NAME,))
    hub.fail("squash", times=9, status=503)
    with pytest.raises(TransientError):
        takedown(place.home, wish, sleep=lambda seconds: None, **to)
    assert grep(everything(place.home / "snapshots"), NAME.encode())
    hub._faults.clear()
    assert takedown(place.home, wish, **to).complete
    assert grep(served(hub), *traces(place), *names()) == []


def everywhere_gone(place: Place, hub: LoopbackHub) -> None:
    """Nothing of it is left, and what is left is whole under its old name with its tags."""
    assert grep(everything(place.home), *traces(place), *names()) == []
    assert grep(served(hub), *traces(place), *names()) == []
    assert set(hub.repos) == {f"news/{place.earlier.name}", f"news/{place.later.name}"}
    for folder in (place.earlier, place.later):
        repo = hub.repo(f"news/{folder.name}")
        assert set(repo.tags.values()) == {repo.branches["main"]}
        assert hub.files(repo.name)["snapshot.json"] == (folder / "snapshot.json").read_bytes()
    assert set(hub.repo(f"news/{place.later.name}").tags) == {"r1", "r2"}


def test_where_squashing_is_refused_the_repository_is_built_anew(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    hub.repo(f"news/{place.later.name}").private = True
    hub.fail("squash", times=2, status=403, message="Forbidden")
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert receipt.complete, receipt.failures
    assert all("built anew" in told for told in receipt.repositories.values())
    everywhere_gone(place, hub)
    assert hub.repo(f"news/{place.later.name}").private
    assert not hub.repo(f"news/{place.earlier.name}").private


def test_pull_requests_that_keep_old_revisions_go_with_the_repository(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    repo = hub.repo(f"news/{place.later.name}")
    repo.pulls["1"] = repo.branches["main"]
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert receipt.complete, receipt.failures
    everywhere_gone(place, hub)


@pytest.mark.slow
@pytest.mark.parametrize(("at", "after"), [("tag", False), ("delete", True), ("move", False)])
def test_an_interrupted_rebuilding_is_taken_up(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]], at: str, after: bool
) -> None:
    place, to = there
    wish = Wish(entities=(NAME,))
    hub.fail("squash", times=9, status=403, message="Forbidden")
    # as often as it is tried, so that the run gives up here, unless the lost answer is noticed
    hub.fail(at, times=5, status=503, after=after)
    try:
        takedown(place.home, wish, sleep=lambda seconds: None, **to)
    except TransientError:
        served_now = {name for name, repo in hub.repos.items() if "snapshot.json" in repo.resolve("main").tree}
        assert any(name.startswith(f"news/{place.later.name}") for name in served_now)
    hub._faults.clear()
    hub.fail("squash", times=9, status=403, message="Forbidden")
    assert takedown(place.home, wish, sleep=lambda seconds: None, **to).complete
    everywhere_gone(place, hub)


def test_what_a_hub_does_not_allow_is_said(hub: LoopbackHub, there: tuple[Place, dict[str, Any]]) -> None:
    place, to = there
    hub.fail("lfs-delete", times=9, status=403, message="Forbidden")
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert not receipt.complete
    assert any("large files" in failure for failure in receipt.failures)
    assert grep(everything(place.home), *traces(place)) == []

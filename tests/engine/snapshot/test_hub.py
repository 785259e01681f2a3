"""Pushing to a Hub over real HTTP: once, twice, with faults, by two at once, and what is refused."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import snapshots
from support.hub import LoopbackHub, free_port

from engine.core.errors import ConfigError, NestError, RefusedError, TerminalError, TransientError
from engine.snapshot.hub import push
from engine.snapshot.verify_remote import verify_remote

REPO = "news/{name}"
NAME = f"news/{snapshots.WINDOW.name}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 4)
    return found


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same window with other rows."""
    found = tmp_path_factory.mktemp("other") / snapshots.WINDOW.name
    snapshots.snapshot(found, 4, seed=50)
    return found


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


def no_sleep(seconds: float) -> None:
    assert seconds <= 120


def do(hub: LoopbackHub, folder: Path, **options: object) -> object:
    return push(folder, repo=REPO, token=hub.token, endpoint=hub.endpoint, sleep=no_sleep, **options)  # type: ignore[arg-type]


def same_files(hub: LoopbackHub, folder: Path, revision: str = "main") -> bool:
    there = {name: data for name, data in hub.files(NAME, revision).items() if name != ".gitattributes"}
    here = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return there == here


def test_push_makes_one_commit_and_a_tag(hub: LoopbackHub, folder: Path) -> None:
    result = do(hub, folder)
    repo = hub.repo(NAME)
    assert result.done == "pushed"
    assert result.rows == 4
    assert result.commit == repo.branches["main"] == repo.tags["r1"]
    assert len(list(repo.history("main"))) == 2
    assert same_files(hub, folder, "r1")
    assert hub.requests["commit"] == 1


def test_pushing_again_does_nothing(hub: LoopbackHub, folder: Path) -> None:
    first = do(hub, folder)
    again = do(hub, folder)
    assert again.done == "nothing to do"
    assert again.commit == first.commit
    assert hub.requests["commit"] == 1
    assert hub.requests["lfs-upload"] == 2


def test_a_lost_tag_is_made_by_the_next_push(hub: LoopbackHub, folder: Path) -> None:
    do(hub, folder)
    del hub.repo(NAME).tags["r1"]
    assert do(hub, folder).done == "nothing to do"
    assert hub.repo(NAME).tags["r1"] == hub.repo(NAME).branches["main"]


def test_other_bytes_under_the_same_name_are_refused(hub: LoopbackHub, folder: Path, other: Path) -> None:
    do(hub, folder)
    with pytest.raises(RefusedError, match="other bytes"):
        do(hub, other)
    assert same_files(hub, folder)


def test_a_foreign_repository_is_refused(hub: LoopbackHub, folder: Path) -> None:
    do(hub, folder)
    repo = hub.repo(NAME)
    repo.commit("main", {"mine.txt": b"hello"}, delete=("snapshot.json",), title="by hand")
    with pytest.raises(RefusedError, match="not a snapshot of ours"):
        do(hub, folder)


def test_stray_files_beside_equal_bytes_are_refused(hub: LoopbackHub, folder: Path) -> None:
    do(hub, folder)
    hub.repo(NAME).commit("main", {"data/train-00001-of-00002.parquet": b"x"}, title="stale shard")
    with pytest.raises(RefusedError):
        do(hub, folder)


def test_a_published_tag_is_never_moved(hub: LoopbackHub, folder: Path) -> None:
    do(hub, folder)
    repo = hub.repo(NAME)
    repo.tags["r1"] = list(repo.history("main"))[-1].oid
    with pytest.raises(RefusedError, match="never moved"):
        do(hub, folder)


@pytest.mark.parametrize("option", [{"portable": True}, {"writer": "template"}])
def test_trial_rows_are_refused_unless_allowed(hub: LoopbackHub, tmp_path: Path, option: dict[str, object]) -> None:
    folder = tmp_path / snapshots.WINDOW.name
    snapshots.snapshot(folder, 2, **option)
    with pytest.raises(RefusedError):
        do(hub, folder)
    assert not hub.repos
    assert do(hub, folder, allow_portable=True).done == "pushed"


def test_dry_run_changes_nothing(hub: LoopbackHub, folder: Path) -> None:
    result = do(hub, folder, dry_run=True)
    assert result.done == "would create and push"
    assert "snapshot.json" in result.files
    assert result.size_bytes > 1000
    assert not hub.repos
    do(hub, folder)
    assert do(hub, folder, dry_run=True).done == "nothing to do"


def test_private_repository(hub: LoopbackHub, folder: Path) -> None:
    do(hub, folder, private=True)
    assert hub.repo(NAME).private


def test_a_damaged_folder_is_not_pushed(hub: LoopbackHub, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    card = copy / "README.md"
    card.write_text(card.read_text() + "one more line\n")
    with pytest.raises(TerminalError, match="does not verify"):
        do(hub, copy)
    assert not hub.repos


def test_no_contact_is_refused(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / snapshots.WINDOW.name
    snapshots.snapshot(folder, 1, config=snapshots.CONFIG.model_copy(update={"contact": ""}))
    with pytest.raises(RefusedError, match="contact"):
        do(hub, folder)


@pytest.mark.parametrize("built_for", ["", "somebody/{name}"])
def test_a_push_elsewhere_names_the_new_place(hub: LoopbackHub, tmp_path: Path, built_for: str) -> None:
    folder = tmp_path / snapshots.WINDOW.name
    snapshots.snapshot(folder, 2, hub_repo=built_for)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert do(hub, folder).done == "pushed"
    files = hub.files(NAME)
    card = files["README.md"].decode()
    assert f'load_dataset("{NAME}", split="train", revision="r1")' in card
    assert "somebody" not in card
    assert files["data/train-00000-of-00001.parquet"] == before[folder / "data" / "train-00000-of-00001.parquet"]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    # what follows from the folder alone is the same the next time
    assert do(hub, folder).done == "nothing to do"
    told = verify_remote(f"{NAME}@r1", token=hub.token, endpoint=hub.endpoint)
    assert told.findings == ()


def test_a_card_that_the_hub_does_not_take(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / snapshots.WINDOW.name
    snapshots.snapshot(folder, 1, config=snapshots.CONFIG.model_copy(update={"license": "my-own"}))
    with pytest.raises(TerminalError, match="my-own"):
        do(hub, folder)
    assert len(list(hub.repo(NAME).history("main"))) == 1


# -- faults


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("commit", {"status": 500, "after": True}),
        ("commit", {"status": 504, "message": "Gateway Time-out", "after": True}),
        ("commit", {"status": 504}),
        ("commit", {"drop": True, "after": True}),
        ("commit", {"drop": True}),
        ("commit", {"status": 409, "message": "Conflict: a commit is in progress"}),
        ("commit", {"status": 412, "message": "A commit has happened since. Please refresh and try again."}),
        ("commit", {"status": 429, "headers": {"ratelimit": '"api";r=0;t=55'}}),
        ("tag", {"status": 500, "after": True}),
        ("tag", {"status": 503}),
        ("tag", {"drop": True, "after": True}),
        ("create", {"status": 500, "after": True}),
        ("create", {"status": 503}),
        ("refs", {"status": 502}),
        ("tree", {"drop": True}),
        ("info", {"status": 503}),
    ],
)
def test_faults_that_pass_lose_and_double_nothing(
    hub: LoopbackHub, folder: Path, kind: str, fault: dict[str, object]
) -> None:
    hub.fail(kind, **fault)  # type: ignore[arg-type]
    result = do(hub, folder)
    assert result.done == "pushed"
    repo = hub.repo(NAME)
    assert len(list(repo.history("main"))) == 2
    assert repo.tags["r1"] == repo.branches["main"]
    assert same_files(hub, folder)


@pytest.mark.slow
def test_a_connection_lost_in_upload_is_resumed(hub: LoopbackHub, folder: Path) -> None:
    hub.fail("lfs-upload", drop=True)
    assert do(hub, folder).done == "pushed"
    assert same_files(hub, folder)


def test_spent_quota_stops_with_work_left(hub: LoopbackHub, folder: Path) -> None:
    hub.fail(
        "commit",
        status=429,
        message="You have exceeded our hourly quotas for action: commit (128)",
        headers={"retry-after": "3600"},
    )
    with pytest.raises(TransientError, match="60 minutes"):
        do(hub, folder)
    assert hub.requests["commit"] == 1
    # the next run goes on with what is built
    assert do(hub, folder).done == "pushed"
    assert len(list(hub.repo(NAME).history("main"))) == 2


def test_tries_are_bounded(hub: LoopbackHub, folder: Path) -> None:
    hub.fail("commit", times=50, status=412, message="A commit has happened since.")
    with pytest.raises(TransientError):
        do(hub, folder)
    assert hub.requests["commit"] == 5


@pytest.mark.parametrize(("token", "error"), [("hf_wrong", ConfigError), ("hf_loopback_read", ConfigError)])
def test_wrong_tokens_are_named(hub: LoopbackHub, folder: Path, token: str, error: type[NestError]) -> None:
    with pytest.raises(error, match="HF_TOKEN"):
        push(folder, repo=REPO, token=token, endpoint=hub.endpoint, sleep=no_sleep)
    assert not hub.repos


def test_an_unreachable_hub_is_work_left(folder: Path) -> None:
    with pytest.raises(TransientError, match="connection"):
        push(folder, repo=REPO, token="t", endpoint=f"http://127.0.0.1:{free_port()}", sleep=no_sleep)


@pytest.mark.parametrize("endpoint", ["huggingface.co", "ftp://x", "http://"])
def test_an_endpoint_that_is_no_address(folder: Path, endpoint: str) -> None:
    with pytest.raises(ConfigError, match="HF_ENDPOINT"):
        push(folder, repo=REPO, token="t", endpoint=endpoint)


@pytest.mark.parametrize("repo", ["", "nest", "a/b/c", "a b/c", "../x"])
def test_a_repo_that_is_no_name(folder: Path, repo: str) -> None:
    with pytest.raises(ConfigError, match="owner"):
        push(folder, repo=repo, token="t", endpoint="http://127.0.0.1:1")


def test_someone_commits_in_between(hub: LoopbackHub, folder: Path, other: Path) -> None:
    """The head moves between reading it and the commit: another snapshot won, ours is refused, theirs is whole."""
    hub.before("commit", lambda: do(hub, other))
    with pytest.raises(RefusedError, match="other bytes"):
        do(hub, folder)
    assert same_files(hub, other)
    assert hub.repo(NAME).tags["r1"] == hub.repo(NAME).branches["main"]


@pytest.mark.parametrize("equal", [True, False])
def test_two_pushers_at_once(hub: LoopbackHub, folder: Path, other: Path, equal: bool) -> None:
    barrier = threading.Barrier(2)
    results: list[object] = []

    def run(which: Path) -> None:
        barrier.wait()
        try:
            results.append(do(hub, which).done)
        except NestError as error:
            results.append(type(error))

    threads = [threading.Thread(target=run, args=(which,)) for which in (folder, folder if equal else other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    repo = hub.repo(NAME)
    assert len(list(repo.history("main"))) == 2
    assert repo.tags["r1"] == repo.branches["main"]
    if equal:
        assert set(results) <= {"pushed", "nothing to do"}
        assert same_files(hub, folder)
    else:
        assert sorted(map(str, results)) == sorted(["pushed", str(RefusedError)])
        assert same_files(hub, folder) or same_files(hub, other)

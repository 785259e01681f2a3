"""Taking rows out of a Hub repository, from every revision that holds them.

A repository keeps its history, so a new commit alone removes nothing: the head is written without the rows, the
history is squashed into it, all tags move to it, other branches that hold old files go, and the large files that
nothing names any more are deleted for good. Where squashing is refused, or pull requests keep old revisions, the
repository is built anew (`hub_rebuild`). Then everything that is still served is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import NestError, TerminalError, TransientError
from engine.core.schema import FunnelStep, SnapshotManifest
from engine.snapshot.hub_client import Then, decision_of, patiently
from engine.snapshot.hub_files import Remote, differences, read_remote
from engine.snapshot.hub_rebuild import rebuild, take_up
from engine.snapshot.manifest import read_manifest
from engine.snapshot.matches import Wish, match
from engine.snapshot.names import HUB_FILES, MANIFEST, SEAL
from engine.snapshot.needles import Needles
from engine.snapshot.revise import rewrite

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(slots=True)
class HubPurge:
    """What was done in one repository, and what could not be (`failures`, as sentences)."""

    repo: str
    ids: set[str] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    large_files: int = 0
    rebuilt: bool = False
    failures: list[str] = field(default_factory=list)
    note: str = ""


def without(folder: Path, out: Path, ids: Collection[str], needles: Needles) -> SnapshotManifest:
    """Write a snapshot folder again without some rows; their ids become tombstones."""
    manifest = read_manifest(folder)
    gone = set(ids)

    def funnel(kept: int) -> tuple[FunnelStep, ...]:
        step = FunnelStep(
            stage="takedown", found=kept + len(gone), kept=kept, rejected={"taken_down": len(gone)} if gone else {}
        )
        return (*manifest.funnel, step)

    return rewrite(
        folder,
        out,
        change=lambda row: None if row.id in gone else row,
        tombstones=tuple(sorted({*manifest.tombstones, *gone})),
        errata=tuple(item for item in manifest.errata if not needles.in_text(f"{item.change} {item.because}")),
        funnel=funnel,
    )


def fetch_revision(api: HfApi, repo: str, revision: str, into: Path) -> Path:
    """Download a revision of a dataset repository into a folder of its own; returns the folder."""
    from huggingface_hub import snapshot_download

    folder = into / revision
    snapshot_download(
        repo,
        repo_type="dataset",
        revision=revision,
        local_dir=folder,
        endpoint=api.endpoint,
        token=api.token,
        max_workers=4,
    )
    return folder


def purge_repository(
    api: HfApi,
    repo: str,
    wish: Wish,
    *,
    home: Path,
    work: Path,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> HubPurge:
    """Remove what a wish is about from a repository. `work` is an empty folder for downloads.

    Raises `TransientError` when the Hub's patience or ours is spent; done again, it goes on where it stopped.
    """
    done = HubPurge(repo)
    remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
    if remote is None and not dry_run and take_up(api, repo, sleep=sleep):
        # an earlier takedown was interrupted between deleting and renaming
        done.rebuilt = True
        remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
    if remote is None:
        done.note = "no such repository, or no right to see it"
        return done
    if SEAL in remote.files and MANIFEST not in remote.files:
        done.failures.append(f"{repo} is sealed: 'nest push' replaces it without the rows that were removed here")
        return done
    head_folder, head_ids, needles = _look(api, repo, wish, remote, home, work, done, sleep)
    if not done.ids:
        done.note = "" if done.rebuilt else "nothing of it there"
        return done
    if dry_run:
        return done
    clean = work / "clean"
    if head_ids:
        without(head_folder, clean, head_ids, needles)
    else:
        clean = head_folder
    manifest = read_manifest(clean)
    squashed = not _pull_requests(api, repo, sleep) and _squash(api, repo, clean, manifest, remote, done, sleep)
    if not squashed:
        tags = {*remote.tags, manifest.revision}
        stays = {name: head_folder / name for name in HUB_FILES - {".gitattributes"} if (head_folder / name).is_file()}
        done.rebuilt = _try(
            f"building {repo} anew",
            lambda: rebuild(api, repo, clean, manifest, tags=tags, beside=stays, sleep=sleep),
            done,
            sleep,
        )
    now = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
    if now is None:
        raise TransientError(f"{repo} cannot be seen after it was cleaned: run the same takedown again")
    _move_refs(api, repo, now.head, done, sleep)
    if not done.rebuilt:
        _delete_large(api, repo, done, sleep)
    _look_again(api, repo, clean, manifest, done, sleep)
    return done


def _pull_requests(api: HfApi, repo: str, sleep: Callable[[float], None]) -> bool:
    """Whether there are any: each began at a revision of old, which it keeps alive for good."""
    refs = patiently(
        f"reading {repo}",
        lambda: api.list_repo_refs(repo, repo_type="dataset", include_pull_requests=True),
        sleep=sleep,
    )
    return bool(refs.pull_requests)


def _look(
    api: HfApi,
    repo: str,
    wish: Wish,
    remote: Remote,
    home: Path,
    work: Path,
    done: HubPurge,
    sleep: Callable[[float], None],
) -> tuple[Path, set[str], Needles]:
    """Download every revision that has a name and find the rows; returns the head's folder, rows and needles."""
    refs = patiently(f"reading {repo}", lambda: api.list_repo_refs(repo, repo_type="dataset"), sleep=sleep)
    commits = [remote.head, *remote.tags.values(), *(str(branch.target_commit) for branch in refs.branches)]
    fetched: dict[str, Path] = {}
    for commit in dict.fromkeys(commits):
        folder = patiently(f"reading {repo}", lambda at=commit: fetch_revision(api, repo, at, work), sleep=sleep)  # type: ignore[misc]
        if (folder / MANIFEST).is_file():
            fetched[commit] = folder
    found = match(home, wish, more=tuple(fetched.values()))
    for folder in fetched.values():
        done.ids |= found.rows.get(folder, set())
    head_folder = fetched.get(remote.head, work / remote.head)
    return head_folder, found.rows.get(head_folder, set()), found.needles


def _commit(
    api: HfApi, repo: str, clean: Path, manifest: SnapshotManifest, remote: Remote, sleep: Callable[[float], None]
) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    names = [*(item.path for item in manifest.files), MANIFEST]

    def commit() -> str:
        now = read_remote(api, repo) or remote
        if not differences(clean, manifest, now):
            return now.head
        stale = [name for name in now.files if name not in names and name not in HUB_FILES]
        operations: list[Any] = [CommitOperationDelete(path_in_repo=name) for name in stale]
        operations += [CommitOperationAdd(name, str(clean / name)) for name in names]
        made = api.create_commit(
            repo,
            operations,
            commit_message=f"{manifest.name} {manifest.revision}: rows removed on request",
            repo_type="dataset",
            parent_commit=now.head,
        )
        return str(made.oid)

    return patiently(f"the commit to {repo}", commit, sleep=sleep)


def _squash(
    api: HfApi,
    repo: str,
    clean: Path,
    manifest: SnapshotManifest,
    remote: Remote,
    done: HubPurge,
    sleep: Callable[[float], None],
) -> bool:
    """Commit the clean files and make one commit of the history; False where the Hub refuses that."""

    def squash() -> None:
        # a squash that went through although its answer was lost leaves one commit: doing it again changes nothing
        api.super_squash_history(
            repo, branch="main", commit_message=f"{manifest.name} {manifest.revision}", repo_type="dataset"
        )

    _commit(api, repo, clean, manifest, remote, sleep)
    # a refusal is no failure yet: the repository can be built anew
    return _try(f"squashing the history of {repo}", squash, HubPurge(repo), sleep)


def _move_refs(api: HfApi, repo: str, head: str, done: HubPurge, sleep: Callable[[float], None]) -> None:
    refs = patiently(f"reading {repo}", lambda: api.list_repo_refs(repo, repo_type="dataset"), sleep=sleep)

    def move(name: str) -> None:
        now = read_remote(api, repo)
        if now and name in now.tags:
            if now.tags[name] == head:
                return
            api.delete_tag(repo, tag=name, repo_type="dataset")
        api.create_tag(repo, tag=name, revision=head, repo_type="dataset")

    for tag in refs.tags:
        if str(tag.target_commit) != head and _try(f"moving the tag {tag.name}", lambda: move(tag.name), done, sleep):  # noqa: B023
            done.tags.append(tag.name)
    for branch in refs.branches:
        if branch.name == "main":
            continue
        name = branch.name
        if _try(
            f"deleting the branch {name}",
            lambda: api.delete_branch(repo, branch=name, repo_type="dataset"),  # noqa: B023
            done,
            sleep,
        ):
            done.branches.append(name)
    done.failures += [
        f"the Hub's own copy {item.ref} of {repo} may hold it until the Hub makes it anew" for item in refs.converts
    ]


def _delete_large(api: HfApi, repo: str, done: HubPurge, sleep: Callable[[float], None]) -> None:
    def delete() -> int:
        stale = _stale_large(api, repo)
        api.permanently_delete_lfs_files(repo, stale, rewrite_history=True, repo_type="dataset")
        return len(stale)

    found: list[int] = []
    if _try(f"deleting the large files of {repo}", lambda: found.append(delete()), done, sleep):
        done.large_files = found[0]


def _stale_large(api: HfApi, repo: str) -> list[Any]:
    """Stored large files that the head does not name.

    Raises `TerminalError` if the list does not name the head's own either: then it is told in other words than ours,
    and deleting by it could take what is in use.
    """
    now = read_remote(api, repo)
    wanted = {file.sha256 for file in now.files.values() if file.sha256} if now else set()
    listed = list(api.list_lfs_files(repo, repo_type="dataset"))
    known = {item.oid for item in listed} | {item.file_oid for item in listed}
    if wanted - known:
        raise TerminalError(f"the list of large files of {repo} does not name those in use: none was deleted")
    return [item for item in listed if item.oid not in wanted and item.file_oid not in wanted]


def _look_again(
    api: HfApi, repo: str, clean: Path, manifest: SnapshotManifest, done: HubPurge, sleep: Callable[[float], None]
) -> None:
    """Whatever still has a name must be the clean folder, and no other large file may be stored."""

    def look() -> list[str]:
        wrong = []
        now = read_remote(api, repo)
        if now is None:
            return [f"{repo} is gone"]
        for name in ("main", *now.tags):
            there = read_remote(api, repo, name)
            if there is None or differences(clean, manifest, there):
                wrong.append(f"{repo}@{name} still serves other files")
        # a repository that was built anew begins with the Hub's own commit, which holds no data
        if len(list(api.list_repo_commits(repo, repo_type="dataset"))) > (2 if done.rebuilt else 1):
            wrong.append(f"{repo} still has its history")
        stale = _stale_large(api, repo)
        return wrong + ([f"{repo} still stores {len(stale)} old large files"] if stale else [])

    done.failures += patiently(f"reading {repo} back", look, sleep=sleep)


def _try(what: str, action: Callable[[], object], done: HubPurge, sleep: Callable[[float], None]) -> bool:
    """Do what a Hub may not allow; a refusal is noted and the rest goes on, a spent patience ends the whole."""
    try:
        patiently(what, action, sleep=sleep)
    except TransientError:
        raise
    except NestError as error:
        done.failures.append(str(error))
        return False
    except Exception as error:
        decision = decision_of(error)
        if decision is None or decision.then is not Then.STOP:
            raise
        done.failures.append(f"{what} failed: {decision.why}")
        return False
    return True

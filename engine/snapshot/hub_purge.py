"""Taking rows out of a Hub repository, from every revision that holds them.

A repository keeps its history, so a new commit alone removes nothing: the head is written without the rows, the
history is squashed into it, all tags move to it, other branches that hold old files go, and the large files that
nothing names any more are deleted for good. Where squashing is refused, or pull requests keep old revisions, the
repository is built anew (`hub_rebuild`). Then everything that is still served is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import TransientError
from engine.core.schema import FunnelStep, SnapshotManifest
from engine.snapshot.hub_cleaning import Cleaning, HubPurge
from engine.snapshot.hub_files import Remote, differences, read_remote
from engine.snapshot.hub_rebuild import rebuild, take_up
from engine.snapshot.manifest import read_manifest
from engine.snapshot.matches import Wish, match
from engine.snapshot.names import HUB_FILES, MANIFEST, SEAL
from engine.snapshot.needles import Needles
from engine.snapshot.revise import rewrite

if TYPE_CHECKING:
    from huggingface_hub import HfApi


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
    here = Cleaning(api, repo, done, sleep)
    remote = here.read()
    if remote is None and not dry_run and take_up(api, repo, sleep=sleep):
        # an earlier takedown was interrupted between deleting and renaming
        done.rebuilt = True
        remote = here.read()
    if remote is None:
        done.note = "no such repository, or no right to see it"
        return done
    if SEAL in remote.files and MANIFEST not in remote.files:
        done.failures.append(f"{repo} is sealed: 'nest push' replaces it without the rows that were removed here")
        return done
    head_folder, head_ids, needles = _look(here, wish, remote, home, work)
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
    # pull requests keep the revisions alive that they began at
    if here.refs(pull_requests=True).pull_requests or not _squash(here, clean, manifest, remote):
        tags = {*remote.tags, manifest.revision}
        stays = {name: head_folder / name for name in HUB_FILES - {".gitattributes"} if (head_folder / name).is_file()}
        done.rebuilt = here.attempt(
            f"building {repo} anew",
            lambda: rebuild(api, repo, clean, manifest, tags=tags, beside=stays, sleep=sleep),
        )
    now = here.read()
    if now is None:
        raise TransientError(f"{repo} cannot be seen after it was cleaned: run the same takedown again")
    here.move_refs(now.head)
    if not done.rebuilt:
        here.delete_large()
    here.look_again(clean, manifest)
    return done


def _look(here: Cleaning, wish: Wish, remote: Remote, home: Path, work: Path) -> tuple[Path, set[str], Needles]:
    """Download every revision that has a name and find the rows; returns the head's folder, rows and needles."""
    commits = [remote.head, *remote.tags.values(), *(str(branch.target_commit) for branch in here.refs().branches)]
    fetched: dict[str, Path] = {}
    for commit in dict.fromkeys(commits):
        folder = here.patiently(f"reading {here.repo}", lambda at=commit: fetch_revision(here.api, here.repo, at, work))  # type: ignore[misc]
        if (folder / MANIFEST).is_file():
            fetched[commit] = folder
    found = match(home, wish, more=tuple(fetched.values()))
    for folder in fetched.values():
        here.done.ids |= found.rows.get(folder, set())
    head_folder = fetched.get(remote.head, work / remote.head)
    return head_folder, found.rows.get(head_folder, set()), found.needles


def _commit(here: Cleaning, clean: Path, manifest: SnapshotManifest, remote: Remote) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    names = [*(item.path for item in manifest.files), MANIFEST]

    def commit() -> str:
        now = read_remote(here.api, here.repo) or remote
        if not differences(clean, manifest, now):
            return now.head
        stale = [name for name in now.files if name not in names and name not in HUB_FILES]
        operations: list[Any] = [CommitOperationDelete(path_in_repo=name) for name in stale]
        operations += [CommitOperationAdd(name, str(clean / name)) for name in names]
        made = here.api.create_commit(
            here.repo,
            operations,
            commit_message=f"{manifest.name} {manifest.revision}: rows removed on request",
            repo_type="dataset",
            parent_commit=now.head,
        )
        return str(made.oid)

    return here.patiently(f"the commit to {here.repo}", commit)


def _squash(here: Cleaning, clean: Path, manifest: SnapshotManifest, remote: Remote) -> bool:
    """Commit the clean files and make one commit of the history; False where the Hub refuses that."""

    def squash() -> None:
        # a squash that went through although its answer was lost leaves one commit: doing it again changes nothing
        here.api.super_squash_history(
            here.repo, branch="main", commit_message=f"{manifest.name} {manifest.revision}", repo_type="dataset"
        )

    _commit(here, clean, manifest, remote)
    # a refusal is no failure yet: the repository can be built anew
    return here.attempt(f"squashing the history of {here.repo}", squash, noted=False)

"""Building a repository anew where its history cannot be squashed, or pull requests keep old revisions alive.

The clean files go to a neighbour repository first, with all tags; only when it is complete is the old repository
deleted and the neighbour given its name. So at every moment the data lie somewhere on the Hub, and a run that was
interrupted is taken up where it stopped. What is lost are likes, discussions and download counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.schema import SnapshotManifest
from engine.snapshot.hub_client import patiently
from engine.snapshot.hub_files import differences, read_remote
from engine.snapshot.names import MANIFEST

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_SUFFIX = "-rebuilt"


def neighbour(repo: str) -> str:
    """The repository that the clean files go to first."""
    return f"{repo}{_SUFFIX}"


def rebuild(
    api: HfApi,
    repo: str,
    clean: Path,
    manifest: SnapshotManifest,
    *,
    tags: Collection[str],
    beside: Mapping[str, Path],
    sleep: Callable[[float], None],
) -> str:
    """Replace a repository by one with a single commit of the clean folder, all tags on it; returns the commit.

    `beside` are files of the head that stay though they are not the snapshot's.
    """
    from huggingface_hub import CommitOperationAdd

    other = neighbour(repo)
    private = bool(patiently(f"reading {repo}", lambda: api.repo_info(repo, repo_type="dataset").private, sleep=sleep))
    patiently(
        f"creating {other}",
        lambda: api.create_repo(other, repo_type="dataset", private=private, exist_ok=True),
        sleep=sleep,
    )

    def commit() -> str:
        now = read_remote(api, other)
        if now is not None and not differences(clean, manifest, now):
            return now.head
        names = [*(item.path for item in manifest.files), MANIFEST]
        files = {**{name: clean / name for name in names}, **beside}
        made = api.create_commit(
            other,
            [CommitOperationAdd(name, str(path)) for name, path in files.items()],
            commit_message=f"{manifest.name} {manifest.revision}",
            repo_type="dataset",
            parent_commit=now.head if now else None,
        )
        return str(made.oid)

    def tag() -> None:
        now = read_remote(api, other)
        for name in sorted(set(tags) - set(now.tags if now else ())):
            api.create_tag(other, tag=name, revision=head, repo_type="dataset")

    head = patiently(f"the commit to {other}", commit, sleep=sleep)
    patiently(f"tagging {other}", tag, sleep=sleep)
    patiently(f"deleting {repo}", lambda: api.delete_repo(repo, repo_type="dataset", missing_ok=True), sleep=sleep)
    take_up(api, repo, sleep=sleep)
    return head


def take_up(api: HfApi, repo: str, *, sleep: Callable[[float], None]) -> bool:
    """Give a complete neighbour the name of a repository that is gone; False if there is none."""

    def move() -> bool:
        if read_remote(api, repo) is not None:
            return True  # the move went through, its answer was lost
        if read_remote(api, neighbour(repo)) is None:
            return False
        api.move_repo(from_id=neighbour(repo), to_id=repo, repo_type="dataset")
        return True

    return patiently(f"renaming {neighbour(repo)}", move, sleep=sleep)

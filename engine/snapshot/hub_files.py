"""What a dataset repository holds at a revision, and how it differs from a local folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.schema import SnapshotManifest
from engine.core.store import sha256_file
from engine.snapshot.names import DATA, HUB_FILES, MANIFEST

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a commit: its size, git blob id, and the sha256 of its content if it is kept as a large file."""

    size: int
    blob: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository as the server tells it: the commit, its files, and all tags with the commit they name."""

    head: str
    files: Mapping[str, RemoteFile]
    tags: Mapping[str, str]


def git_blob_sha1(data: bytes) -> str:
    """The id git gives a file of that content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def read_remote(api: HfApi, repo: str, revision: str = "main") -> Remote | None:
    """The repository at a revision, read from the server now; None if there is no such repository."""
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    try:
        info = api.repo_info(repo, repo_type="dataset", revision=revision)
    except RepositoryNotFoundError:
        return None
    head = str(info.sha)
    files = {
        item.path: RemoteFile(int(item.size), str(item.blob_id), item.lfs.sha256 if item.lfs else None)
        for item in api.list_repo_tree(repo, recursive=True, revision=head, repo_type="dataset")
        if isinstance(item, RepoFile)
    }
    refs = api.list_repo_refs(repo, repo_type="dataset")
    return Remote(head, files, {tag.name: str(tag.target_commit) for tag in refs.tags})


def differences(folder: Path, manifest: SnapshotManifest, remote: Remote) -> list[str]:
    """Paths that are on one side only or have other bytes there, sorted; `.gitattributes` is the Hub's own."""
    known = {item.path: item.sha256 for item in manifest.files}
    known[MANIFEST] = sha256_file(folder / MANIFEST)
    wrong = [name for name in remote.files if name not in known and name not in HUB_FILES]
    for name, digest in known.items():
        there = remote.files.get(name)
        if there is None:
            wrong.append(name)
        elif there.sha256 is not None:
            wrong += [name] if there.sha256 != digest else []
        elif there.blob != git_blob_sha1((folder / name).read_bytes()):
            wrong.append(name)
    return sorted(wrong)


def row_counts(api: HfApi, repo: str, remote: Remote) -> int:
    """Rows of the data files at that commit, from their footers; only a few kilobytes of each are fetched."""
    import pyarrow.parquet as pq
    from huggingface_hub import HfFileSystem

    # listings of an older state must not be taken from the library's cache of instances
    files = HfFileSystem(endpoint=api.endpoint, token=api.token, skip_instance_cache=True)
    rows = 0
    for name in sorted(remote.files):
        if name.startswith(f"{DATA}/") and name.endswith(".parquet"):
            with files.open(f"datasets/{repo}@{remote.head}/{name}", "rb", block_size=1 << 20) as handle:
                rows += int(pq.read_metadata(handle).num_rows)
    return rows

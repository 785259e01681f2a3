"""The repositories of the loopback Hub: commits, branches, tags and large files, all in memory.

It keeps what git and LFS would keep, no more: a commit has one parent and a tree of files; a file is either a blob
with its git id or a pointer to a large file named by its sha256. Serving them over HTTP is in `support.hub`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_clock = itertools.count(1)


def stamp() -> str:
    """A time that only goes forward, one second per call."""
    n = next(_clock)
    return f"2026-11-30T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000Z"


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class HubError(Exception):
    """An answer that is not a success: status, message, and the Hub's error code."""

    def __init__(self, status: int, message: str, code: str = "", **extra: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.extra = status, message, code, extra


@dataclass(frozen=True, slots=True)
class File:
    """A file of a commit: its git id, its size, and the sha256 of its content if it is a large file."""

    blob: str
    size: int
    lfs: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    oid: str
    parent: str | None
    tree: dict[str, File]
    title: str
    message: str
    date: str


@dataclass
class Repo:
    """One dataset repository. `large` holds every large file that was ever uploaded and not deleted for good, `pulls`
    the heads of pull requests by number, which nobody can delete."""

    name: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    created: str = field(default_factory=stamp)

    def __post_init__(self) -> None:
        self.commit(
            "main", {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}, title="initial commit"
        )

    # -- reading

    def resolve(self, revision: str) -> Commit:
        """The commit of a branch, a tag, a ref or an oid (also shortened)."""
        name = revision.removeprefix("refs/heads/").removeprefix("refs/tags/")
        oid = self.branches.get(name) or self.tags.get(name) or self._reachable_oid(name)
        if oid is None:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[oid]

    def _reachable_oid(self, name: str) -> str | None:
        found = [oid for oid in self.reachable() if oid.startswith(name)]
        return found[0] if len(name) >= 7 and len(found) == 1 else None

    def reachable(self) -> set[str]:
        """Commits that some branch, tag or pull request leads to; the Hub serves no others."""
        found: set[str] = set()
        for tip in (*self.branches.values(), *self.tags.values(), *self.pulls.values()):
            oid: str | None = tip
            while oid and oid not in found:
                found.add(oid)
                oid = self.commits[oid].parent
        return found

    def history(self, revision: str) -> Iterator[Commit]:
        commit: Commit | None = self.resolve(revision)
        while commit:
            yield commit
            commit = self.commits[commit.parent] if commit.parent else None

    def content(self, file: File) -> bytes:
        if file.lfs is None:
            return self.blobs[file.blob]
        if file.lfs not in self.large:
            raise HubError(404, "the large file was deleted", "EntryNotFound")
        return self.large[file.lfs]

    def served(self) -> dict[str, bytes]:
        """Every byte that a reader can still get: all files of all reachable commits, and the stored large files."""
        out: dict[str, bytes] = {}
        for oid in sorted(self.reachable()):
            commit = self.commits[oid]
            out[f"{oid}:message"] = f"{commit.title}\n{commit.message}".encode()
            for path, file in commit.tree.items():
                if file.lfs is None:
                    out[f"{oid}:{path}"] = self.blobs[file.blob]
        out.update({f"lfs:{oid}": data for oid, data in self.large.items()})
        return out

    # -- writing

    def commit(
        self,
        branch: str,
        add: dict[str, bytes | str],
        *,
        delete: tuple[str, ...] = (),
        title: str,
        message: str = "",
        parent: str | None = None,
    ) -> Commit:
        """A commit on a branch. Values of `add` are bytes, or the sha256 of an uploaded large file as str."""
        head = self.branches.get(branch)
        if head is None and self.commits:
            raise HubError(404, f"Invalid rev id: {branch}", "RevisionNotFound")
        if parent and not (head or "").startswith(parent):
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(self.commits[head].tree) if head else {}
        for path in delete:
            gone = [name for name in tree if name == path or name.startswith(path.rstrip("/") + "/")]
            if not gone:
                raise HubError(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
            for name in gone:
                del tree[name]
        for path, value in add.items():
            if isinstance(value, bytes):
                tree[path] = File(blob_id(value), len(value))
                self.blobs[tree[path].blob] = value
            else:
                if value not in self.large:
                    raise HubError(400, f"LFS object {value} was not uploaded")
                size = len(self.large[value])
                pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{value}\nsize {size}\n"
                tree[path] = File(blob_id(pointer.encode()), size, value)
        date = stamp()
        told = json.dumps([head, sorted((name, file.blob) for name, file in tree.items()), title, message, date])
        oid = hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()
        self.commits[oid] = Commit(oid, head, tree, title, message, date)
        self.branches[branch] = oid
        return self.commits[oid]

    def squash(self, branch: str, message: str) -> None:
        """One commit without a parent in place of a branch's history; what nothing leads to any more is gone."""
        head = self.resolve(branch)
        date = stamp()
        oid = hashlib.sha1(f"squash {head.oid} {date}".encode(), usedforsecurity=False).hexdigest()
        self.commits[oid] = Commit(oid, None, head.tree, message, "", date)
        self.branches[branch] = oid
        kept = self.reachable()
        self.commits = {name: commit for name, commit in self.commits.items() if name in kept}

    def delete_large(self, oids: list[str], *, rewrite: bool) -> None:
        """Delete large files for good; with `rewrite` the pointers to them go from every commit."""
        for oid in oids:
            self.large.pop(oid, None)
        if rewrite:
            for name, commit in self.commits.items():
                tree = {path: file for path, file in commit.tree.items() if file.lfs not in oids}
                self.commits[name] = Commit(commit.oid, commit.parent, tree, commit.title, commit.message, commit.date)

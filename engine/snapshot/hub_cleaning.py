"""What of a Hub repository keeps old files alive, and getting rid of it: tags, branches, stored large files.

`Cleaning` is one repository while rows are taken out of it, with the record of what was done; the order of the steps
is `hub_purge`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from engine.core.errors import NestError, TerminalError, TransientError
from engine.core.schema import SnapshotManifest
from engine.snapshot.hub_client import Then, decision_of, patiently
from engine.snapshot.hub_files import Remote, differences, read_remote

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Cleaning:
    """A dataset repository, what has been done to it, and how to wait between tries."""

    api: HfApi
    repo: str
    done: HubPurge
    sleep: Callable[[float], None]

    def patiently(self, what: str, action: Callable[[], T]) -> T:
        return patiently(what, action, sleep=self.sleep)

    def read(self) -> Remote | None:
        """The head as it is now, None if there is no such repository."""
        return self.patiently(f"reading {self.repo}", lambda: read_remote(self.api, self.repo))

    def refs(self, *, pull_requests: bool = False) -> Any:
        def listed() -> Any:
            return self.api.list_repo_refs(self.repo, repo_type="dataset", include_pull_requests=pull_requests)

        return self.patiently(f"reading {self.repo}", listed)

    def attempt(self, what: str, action: Callable[[], object], *, noted: bool = True) -> bool:
        """Do what a Hub may not allow; a refusal is noted and the rest goes on, a spent patience ends the whole."""
        try:
            self.patiently(what, action)
        except TransientError:
            raise
        except NestError as error:
            why = str(error)
        except Exception as error:
            decision = decision_of(error)
            if decision is None or decision.then is not Then.STOP:
                raise
            why = f"{what} failed: {decision.why}"
        else:
            return True
        if noted:
            self.done.failures.append(why)
        return False

    def move_refs(self, head: str) -> None:
        """All tags to the head, every other branch away."""
        refs = self.refs()
        for tag in refs.tags:
            at, name = str(tag.target_commit), tag.name
            if at != head and self.attempt(f"moving the tag {name}", lambda: self._move_tag(name, head)):  # noqa: B023
                self.done.tags.append(name)
        for branch in refs.branches:
            if branch.name == "main":
                continue
            name = branch.name
            if self.attempt(
                f"deleting the branch {name}",
                lambda: self.api.delete_branch(self.repo, branch=name, repo_type="dataset"),  # noqa: B023
            ):
                self.done.branches.append(name)
        self.done.failures += [
            f"the Hub's own copy {item.ref} of {self.repo} may hold it until the Hub makes it anew"
            for item in refs.converts
        ]

    def _move_tag(self, name: str, head: str) -> None:
        now = read_remote(self.api, self.repo)
        if now and name in now.tags:
            if now.tags[name] == head:
                return
            self.api.delete_tag(self.repo, tag=name, repo_type="dataset")
        self.api.create_tag(self.repo, tag=name, revision=head, repo_type="dataset")

    def delete_large(self) -> None:
        """The large files that no revision names any more, for good."""
        found: list[int] = []

        def delete() -> None:
            stale = self._stale_large()
            self.api.permanently_delete_lfs_files(self.repo, stale, rewrite_history=True, repo_type="dataset")
            found.append(len(stale))

        if self.attempt(f"deleting the large files of {self.repo}", delete):
            self.done.large_files = found[-1]

    def _stale_large(self) -> list[Any]:
        """Stored large files that the head does not name.

        Raises `TerminalError` if the list does not name the head's own either: then it is told in other words than
        ours, and deleting by it could take what is in use.
        """
        now = read_remote(self.api, self.repo)
        wanted = {file.sha256 for file in now.files.values() if file.sha256} if now else set()
        listed = list(self.api.list_lfs_files(self.repo, repo_type="dataset"))
        known = {item.oid for item in listed} | {item.file_oid for item in listed}
        if wanted - known:
            raise TerminalError(f"the list of large files of {self.repo} does not name those in use: none was deleted")
        return [item for item in listed if item.oid not in wanted and item.file_oid not in wanted]

    def look_again(self, clean: Path, manifest: SnapshotManifest) -> None:
        """Whatever still has a name must be the clean folder, and no other large file may be stored."""
        self.done.failures += self.patiently(f"reading {self.repo} back", lambda: self._still_wrong(clean, manifest))

    def _still_wrong(self, clean: Path, manifest: SnapshotManifest) -> list[str]:
        now = read_remote(self.api, self.repo)
        if now is None:
            return [f"{self.repo} is gone"]
        wrong = []
        for name in ("main", *now.tags):
            there = read_remote(self.api, self.repo, name)
            if there is None or differences(clean, manifest, there):
                wrong.append(f"{self.repo}@{name} still serves other files")
        # a repository that was built anew begins with the Hub's own commit, which holds no data
        if len(list(self.api.list_repo_commits(self.repo, repo_type="dataset"))) > (2 if self.done.rebuilt else 1):
            wrong.append(f"{self.repo} still has its history")
        stale = self._stale_large()
        return wrong + ([f"{self.repo} still stores {len(stale)} old large files"] if stale else [])

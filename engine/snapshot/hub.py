"""Publishing a finished snapshot folder on the Hub: one commit, one tag, read back.

One repository per window, one tag per revision. Equal bytes under the same name are "nothing to do"; other bytes
are refused, unless they are a declared correction: a later revision that says what it replaces. A commit always
names its parent, so nothing is doubled whatever gets lost on the way, and of two pushers at once one wins and the
other finds out.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.core.errors import RefusedError, TerminalError
from engine.core.schema import SnapshotManifest
from engine.snapshot.fit import refuse_unfit, refuse_unreachable
from engine.snapshot.hub_client import TRIES, Then, decision_of, download, failure, hub, patiently
from engine.snapshot.hub_files import Remote, differences, read_remote, row_counts
from engine.snapshot.manifest import from_bytes, read_manifest
from engine.snapshot.names import HUB_FILES, MANIFEST, SEAL, repo_id
from engine.snapshot.readdress import readdress
from engine.snapshot.verify import verify

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Done = Literal["pushed", "nothing to do", "would push", "would create and push"]


@dataclass(frozen=True, slots=True)
class PushResult:
    """What a push did. `commit` is the commit that holds the snapshot ("" for a dry run without one), `files` the
    files that were uploaded or would be, `removed` stale ones that went, `size_bytes` the bytes of `files`."""

    done: Done
    repo: str
    revision: str
    commit: str
    url: str
    rows: int
    files: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    size_bytes: int = 0


def push(
    folder: Path,
    *,
    repo: str,
    token: str | None,
    endpoint: str | None = None,
    private: bool = False,
    dry_run: bool = False,
    allow_portable: bool = False,
    opens_seal: bool = False,
    tries: int = TRIES,
    sleep: Callable[[float], None] = time.sleep,
) -> PushResult:
    """Publish a folder that `build` wrote. `repo` may hold `{name}`; `endpoint` None is `HF_ENDPOINT` or the Hub's own.

    Pushed to another repository than it was built for, the card and the manifest name the new one. The tag is the
    manifest's revision. `opens_seal` lets it take the place of the week's own sealed rows. Raises `RefusedError`
    (exit 4) for rows of the portable annotator or the template writer unless allowed, for a card without a removal
    contact, for other bytes under the same name and revision, and for a tag that points elsewhere; `TerminalError`
    if the folder does not verify or came back changed; `TransientError` (exit 3) when the Hub's patience or ours is
    spent; `ConfigError` for a bad token.
    """
    manifest = read_manifest(folder)
    name = repo_id(repo, manifest.name)
    refuse_unfit(manifest, allow_portable=allow_portable)
    with hub(token, endpoint) as api, tempfile.TemporaryDirectory(prefix="nest-push-") as work:
        if manifest.hub_repo != name:
            moved = Path(work) / "folder"
            moved.mkdir()
            manifest = readdress(folder, moved, hub_repo=name)
            folder = moved
        if bad := verify(folder, repo=name):
            first = bad[0]
            raise TerminalError(
                f"{folder} does not verify ({len(bad)} findings; first: {first.file}: {first.detail}): build it again"
            )
        refuse_unreachable(folder)
        job = _Push(api, name, folder, manifest, Path(work) / "cache", sleep, max(1, tries), opens_seal)
        return job.plan() if dry_run else job.run(private=private)


@dataclass(frozen=True, slots=True)
class _Push:
    api: HfApi
    repo: str
    folder: Path
    manifest: SnapshotManifest
    cache: Path
    sleep: Callable[[float], None]
    tries: int
    opens_seal: bool = False

    def plan(self) -> PushResult:
        """What `run` would do; only reads."""
        remote = self._remote()
        if remote is None:
            return self._result("would create and push", "", files=tuple(self._names()))
        if self._same(remote):
            return self._result("nothing to do", remote.head)
        self._check_right(remote)
        self._check_tag(remote, commit=None)
        return self._result("would push", remote.head, files=tuple(self._names()), removed=self._stale(remote))

    def run(self, *, private: bool) -> PushResult:
        what = f"the push to {self.repo}"
        for tried in range(self.tries):
            # the head is read from the server each time: a commit that seemed to fail may have gone through
            remote = self._remote()
            if remote is None:
                self._create(private)
                remote = self._remote()
            if remote is None:
                raise TerminalError(f"{what} failed: the repository was created and cannot be seen")
            if self._same(remote):
                self._tag(remote.head)
                return self._read_back("pushed" if tried else "nothing to do", remote.head)
            self._check_right(remote)
            self._check_tag(remote, commit=None)
            try:
                commit = self._commit(remote)
            except Exception as error:
                decision = decision_of(error, tried=tried)
                if decision is None:
                    raise
                if decision.then in (Then.STOP, Then.LATER) or tried == self.tries - 1:
                    raise failure(what, decision) from error
                self.sleep(decision.wait_s)
                continue
            self._tag(commit)
            return self._read_back("pushed", commit, files=tuple(self._names()), removed=self._stale(remote))
        raise AssertionError("unreachable: the last try returns or raises")

    # -- looking

    def _names(self) -> list[str]:
        return [*(item.path for item in self.manifest.files), MANIFEST]

    def _remote(self) -> Remote | None:
        """The repository's head as the server tells it now, None if there is no repository."""
        return patiently(f"reading {self.repo}", lambda: read_remote(self.api, self.repo), sleep=self.sleep)

    def _same(self, remote: Remote) -> bool:
        return not differences(self.folder, self.manifest, remote)

    def _stale(self, remote: Remote) -> tuple[str, ...]:
        ours = {*self._names(), *HUB_FILES}
        return tuple(sorted(name for name in remote.files if name not in ours))

    def _check_right(self, remote: Remote) -> None:
        """Refuse to replace what is there, unless this is a declared correction of it."""
        if set(remote.files) <= HUB_FILES:
            return
        raw = patiently(
            f"reading {self.repo}",
            lambda: download(self.api, self.repo, MANIFEST, remote.head, self.cache),
            sleep=self.sleep,
        )
        if raw is None and SEAL in remote.files:
            if self.opens_seal:
                return
            raise RefusedError(f"{self.repo} is sealed: 'nest unseal' publishes the answers when it is time")
        if raw is None:
            raise RefusedError(f"{self.repo} holds files that are not a snapshot of ours: choose another repository")
        try:
            there = from_bytes(raw)
        except ValueError as error:
            raise RefusedError(f"{self.repo} holds a {MANIFEST} that cannot be read ({error}): look at it") from error
        ours = self.manifest
        if there.name != ours.name:
            raise RefusedError(f"{self.repo} holds {there.name}, this is {ours.name}: choose another repository")
        if there.revision == ours.revision:
            raise RefusedError(
                f"{self.repo} has {ours.revision} of {ours.name} with other bytes, which others may have scored on: "
                "publish a correction as a new revision (--revise), or remove the repository yourself"
            )
        if ours.supersedes not in (there.revision, f"{there.name}@{there.revision}", there.digest):
            raise RefusedError(
                f"{self.repo} is at {there.revision}; this is {ours.revision}, which replaces "
                f"{ours.supersedes or 'nothing'}: revise from {there.revision}"
            )
        if not ours.errata:
            raise RefusedError(f"{ours.revision} replaces {there.revision} without an errata entry that says why")

    def _check_tag(self, remote: Remote, *, commit: str | None) -> bool:
        """Whether the tag is there already. A published tag is never moved."""
        target = remote.tags.get(self.manifest.revision)
        if target is not None and target != commit:
            raise RefusedError(
                f"the tag {self.manifest.revision} of {self.repo} is at commit {target[:12]} already: a published tag "
                "is never moved; publish a correction as a new revision"
            )
        return target is not None

    # -- doing

    def _create(self, private: bool) -> None:
        patiently(
            f"creating {self.repo}",
            lambda: self.api.create_repo(self.repo, repo_type="dataset", private=private, exist_ok=True),
            sleep=self.sleep,
        )

    def _commit(self, remote: Remote) -> str:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        manifest = self.manifest
        operations: list[Any] = [CommitOperationDelete(path_in_repo=name) for name in self._stale(remote)]
        # operations are used up by one commit, so they are made for each try
        operations += [CommitOperationAdd(name, str(self.folder / name)) for name in self._names()]
        done = self.api.create_commit(
            self.repo,
            operations,
            commit_message=f"{manifest.name} {manifest.revision}: {manifest.rows} rows",
            commit_description=f"snapshot.json digest {manifest.digest}",
            repo_type="dataset",
            revision="main",
            parent_commit=remote.head,
        )
        return str(done.oid)

    def _tag(self, commit: str) -> None:
        from huggingface_hub.errors import HfHubHTTPError

        def make() -> None:
            remote = read_remote(self.api, self.repo)
            if remote is None or self._check_tag(remote, commit=commit):
                return
            try:
                self.api.create_tag(self.repo, tag=self.manifest.revision, revision=commit, repo_type="dataset")
            except HfHubHTTPError as error:
                if error.response is None or error.response.status_code != 409:
                    raise
                # someone was faster; the next look says whether it is the same commit
                remote = read_remote(self.api, self.repo)
                if remote is not None:
                    self._check_tag(remote, commit=commit)

        patiently(f"tagging {self.repo}", make, sleep=self.sleep)

    def _read_back(
        self, done: Done, commit: str, *, files: tuple[str, ...] = (), removed: tuple[str, ...] = ()
    ) -> PushResult:
        """Hold what the Hub serves at the tag against the folder: hashes, then rows by the files' own footers."""

        def look() -> tuple[list[str], int]:
            remote = read_remote(self.api, self.repo, self.manifest.revision)
            if remote is None:
                return ["the repository"], 0
            return differences(self.folder, self.manifest, remote), row_counts(self.api, self.repo, remote)

        wrong, rows = patiently(f"reading {self.repo} back", look, sleep=self.sleep)
        if wrong or rows != self.manifest.rows:
            raise TerminalError(
                f"{self.repo} does not serve what was pushed ({', '.join(wrong[:3]) or f'{rows} rows'}; "
                f"{self.manifest.rows} rows were written): check the repository before anyone uses it"
            )
        return self._result(done, commit, files=files, removed=removed)

    def _result(
        self, done: Done, commit: str, *, files: tuple[str, ...] = (), removed: tuple[str, ...] = ()
    ) -> PushResult:
        size = sum((self.folder / name).stat().st_size for name in files)
        url = f"{self.api.endpoint}/datasets/{self.repo}"
        revision = self.manifest.revision
        return PushResult(done, self.repo, revision, commit, url, self.manifest.rows, files, removed, size)


__all__ = ["PushResult", "push"]

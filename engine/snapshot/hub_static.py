"""Static files beside the data: leaderboards and published runs as a dataset repository of their own.

A snapshot's repository holds the snapshot and nothing else, so that its bytes can be checked; what is measured on it
lies beside it and may be replaced at any time. One commit with a parent, only what has changed, nothing is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import TerminalError
from engine.core.store import sha256_file
from engine.snapshot.hub_client import TRIES, Then, decision_of, failure, hub, patiently
from engine.snapshot.hub_files import Remote, git_blob_sha1, read_remote

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def push_static(
    files: Mapping[str, Path],
    *,
    repo: str,
    token: str | None,
    endpoint: str | None = None,
    private: bool = False,
    message: str = "scores",
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Put files (path in the repository: local file) into a dataset repository; returns those that were new or other.

    Raises `TransientError` when the Hub's patience or ours is spent, `ConfigError` for a bad token, `TerminalError`
    for a refusal. Done again after a lost answer it finds everything there.
    """
    what = f"the push to {repo}"
    with hub(token, endpoint) as api:
        for tried in range(TRIES):
            remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
            if remote is None:
                patiently(
                    f"creating {repo}",
                    lambda: api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True),
                    sleep=sleep,
                )
                remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
            if remote is None:
                raise TerminalError(f"{what} failed: the repository was created and cannot be seen")
            changed = sorted(name for name, path in files.items() if _differs(path, name, remote))
            if not changed:
                return [] if not tried else sorted(files)
            try:
                _commit(api, repo, {name: files[name] for name in changed}, remote, message)
                return changed
            except Exception as error:
                decision = decision_of(error, tried=tried)
                if decision is None:
                    raise
                if decision.then in (Then.STOP, Then.LATER) or tried == TRIES - 1:
                    raise failure(what, decision) from error
                sleep(decision.wait_s)
    raise AssertionError("unreachable: the last try returns or raises")


def _differs(path: Path, name: str, remote: Remote) -> bool:
    there = remote.files.get(name)
    if there is None:
        return True
    if there.sha256 is not None:
        return there.sha256 != sha256_file(path)
    return there.blob != git_blob_sha1(path.read_bytes())


def _commit(api: HfApi, repo: str, files: Mapping[str, Path], remote: Remote, message: str) -> None:
    from huggingface_hub import CommitOperationAdd

    api.create_commit(
        repo,
        [CommitOperationAdd(name, str(path)) for name, path in files.items()],
        commit_message=message,
        repo_type="dataset",
        parent_commit=remote.head,
    )

"""Publishing a sealed week on the Hub, and making a private repository public.

The first push of a sealed week is one commit with the tag `sealed`. Opening it writes the key into `seal.json`; the
snapshot itself follows by the ordinary push. A repository that was held back is made anew before it becomes public if
it holds earlier revisions: what a review took out must not come to light with the history.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import RefusedError, TerminalError
from engine.snapshot.hub_client import download, hub, patiently
from engine.snapshot.hub_files import Remote, read_remote
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import HUB_FILES, MANIFEST, SEAL, repo_id
from engine.snapshot.sealed import TAG, Seal, from_bytes, opened, to_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True, slots=True)
class Published:
    """What was done to a repository: `done` is a short word for the user, `commit` its head."""

    done: str
    repo: str
    commit: str = ""


def push_sealed(
    folder: Path,
    *,
    repo: str,
    token: str | None,
    endpoint: str | None = None,
    private: bool = False,
    replace: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Published:
    """Publish a folder that `write_sealed` wrote. With `replace` a sealed repository of the same week is made anew.

    Raises `RefusedError` if the repository holds something else, or another sealed edition and `replace` is not set.
    """
    from huggingface_hub import CommitOperationAdd

    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    ours = from_bytes((folder / SEAL).read_bytes())
    with hub(token, endpoint) as api:
        remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
        if remote is not None and not set(remote.files) <= HUB_FILES - {SEAL}:
            there = _seal_there(api, repo, remote, folder.parent / "cache", sleep)
            if there is None or there.name != ours.name or MANIFEST in remote.files:
                raise RefusedError(f"{repo} holds other files than a sealed {ours.name}: choose another repository")
            if there == ours:
                _tag(api, repo, remote.head, sleep)
                return Published("nothing to do", repo, remote.head)
            if not replace:
                raise RefusedError(
                    f"{repo} holds another sealed edition of {ours.name}: it has to be replaced on purpose"
                )
            patiently(f"removing {repo}", lambda: api.delete_repo(repo, repo_type="dataset"), sleep=sleep)
        patiently(
            f"creating {repo}",
            lambda: api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True),
            sleep=sleep,
        )

        def commit() -> str:
            head = read_remote(api, repo)
            if head is not None and set(files) <= set(head.files):
                return head.head  # it went through, and its answer was lost
            operations: list[Any] = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
            done = api.create_commit(
                repo, operations, commit_message=f"{ours.name}, sealed until {ours.opens}", repo_type="dataset"
            )
            return str(done.oid)

        head = patiently(f"the push to {repo}", commit, sleep=sleep)
        _tag(api, repo, head, sleep)
    return Published("pushed sealed", repo, head)


def publish_key(
    *,
    repo: str,
    key: bytes,
    token: str | None,
    endpoint: str | None = None,
    work: Path,
    sleep: Callable[[float], None] = time.sleep,
) -> Seal:
    """Write the key into the repository's `seal.json`; twice is once. Raises `TerminalError` if there is no seal, or
    it promises another key."""
    with hub(token, endpoint) as api:
        remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), sleep=sleep)
        there = _seal_there(api, repo, remote, work, sleep) if remote is not None else None
        if there is None:
            raise TerminalError(f"{repo} holds no {SEAL}: the week was not pushed sealed")
        try:
            made = opened(there, key)
        except ValueError as error:
            raise TerminalError(f"{repo}: {error}: was it sealed from another home?") from error
        if made != there:
            patiently(
                f"opening {repo}",
                lambda: api.upload_file(
                    path_or_fileobj=to_bytes(made),
                    path_in_repo=SEAL,
                    repo_id=repo,
                    repo_type="dataset",
                    commit_message=f"{made.name}: the key",
                ),
                sleep=sleep,
            )
    return made


def release(
    folder: Path,
    *,
    repo: str,
    token: str | None,
    endpoint: str | None = None,
    allow_portable: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Published:
    """Make a snapshot public that was pushed privately, in its present revision and with no other.

    Raises what `hub.push` raises, and `TerminalError` if the Hub does not say afterwards that it is public.
    """
    from engine.snapshot.hub import push

    manifest = read_manifest(folder)
    name = repo_id(repo, manifest.name)
    with hub(token, endpoint) as api:
        private = is_private(api, name, sleep)
        if private:
            remote = patiently(f"reading {name}", lambda: read_remote(api, name), sleep=sleep)
            if remote is not None and set(remote.tags) - {manifest.revision}:
                # nobody outside has seen it: no revision that the review found wrong becomes public by its history
                patiently(f"removing {name}", lambda: api.delete_repo(name, repo_type="dataset"), sleep=sleep)
    pushed = push(
        folder, repo=name, token=token, endpoint=endpoint, private=True, allow_portable=allow_portable, sleep=sleep
    )
    if private is False:
        return Published("was public already", name, pushed.commit)
    with hub(token, endpoint) as api:
        patiently(
            f"releasing {name}",
            lambda: api.update_repo_settings(name, private=False, repo_type="dataset"),
            sleep=sleep,
        )
        if is_private(api, name, sleep) is not False:
            raise TerminalError(f"{name} is still private after it was released: look at its settings on the Hub")
    return Published("released", name, pushed.commit)


def is_private(api: HfApi, repo: str, sleep: Callable[[float], None] = time.sleep) -> bool | None:
    """Whether a dataset repository is private, None if there is none."""
    from huggingface_hub.errors import RepositoryNotFoundError

    def look() -> bool | None:
        try:
            return bool(api.repo_info(repo, repo_type="dataset").private)
        except RepositoryNotFoundError:
            return None

    return patiently(f"reading {repo}", look, sleep=sleep)


def _seal_there(api: HfApi, repo: str, remote: Remote, work: Path, sleep: Callable[[float], None]) -> Seal | None:
    if SEAL not in remote.files:
        return None
    data = patiently(f"reading {repo}", lambda: download(api, repo, SEAL, remote.head, work), sleep=sleep)
    try:
        return from_bytes(data) if data is not None else None
    except (ValueError, TypeError):
        return None


def _tag(api: HfApi, repo: str, commit: str, sleep: Callable[[float], None]) -> None:
    def make() -> None:
        remote = read_remote(api, repo)
        if remote is not None and TAG not in remote.tags:
            api.create_tag(repo, tag=TAG, revision=commit, repo_type="dataset")

    patiently(f"tagging {repo}", make, sleep=sleep)

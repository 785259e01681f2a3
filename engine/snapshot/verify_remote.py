"""`nest verify OWNER/NAME@REV`: downloading a revision from the Hub and checking it like a local folder."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import ConfigError
from engine.snapshot.findings import Finding
from engine.snapshot.hub_client import hub, patiently
from engine.snapshot.hub_purge import fetch_revision
from engine.snapshot.verify import verify

_SPEC = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RemoteCheck:
    """The repository, the commit that was checked, and what is wrong with it."""

    repo: str
    commit: str
    findings: tuple[Finding, ...]


def split_spec(spec: str) -> tuple[str, str]:
    """Repository and revision of `OWNER/NAME@REV`; without a revision it is `main`. Raises `ConfigError`."""
    match = _SPEC.fullmatch(spec.strip().removeprefix("hf://datasets/"))
    if match is None:
        raise ConfigError(f"'{spec}' is neither a snapshot folder nor OWNER/NAME@REVISION")
    return match["repo"], match["revision"] or "main"


def verify_remote(
    spec: str,
    *,
    token: str | None = None,
    endpoint: str | None = None,
    work: Path | None = None,
    rows: bool = True,
    sleep: Callable[[float], None] = time.sleep,
) -> RemoteCheck:
    """Download `OWNER/NAME@REV` into a temporary folder (under `work`, if given) and check everything in it.

    Raises `ConfigError` for a spec that cannot be read and `TerminalError` for a repository or revision that is not
    there; `TransientError` when patience is spent.
    """
    repo, revision = split_spec(spec)
    with hub(token, endpoint) as api, tempfile.TemporaryDirectory(prefix=".tmp-verify-", dir=work) as name:
        info = patiently(
            f"reading {repo}@{revision}",
            lambda: api.repo_info(repo, repo_type="dataset", revision=revision),
            sleep=sleep,
        )
        commit = str(info.sha)
        folder = patiently(
            f"downloading {repo}@{revision}", lambda: fetch_revision(api, repo, commit, Path(name)), sleep=sleep
        )
        return RemoteCheck(repo, commit, tuple(verify(folder, repo=repo, rows=rows)))

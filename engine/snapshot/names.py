"""Names of a snapshot that `datasets` and the Hub accept, and the layout of its folder.

A split name must match `\\w+(\\.\\w+)*` in full: a trailing newline is refused (`re.match` with `$` lets it
through) and so is "all", which means every split. Dated snapshots are therefore named `NEST_250323_250411`,
with underscores, and their splits are plain `train` and `test`.
"""

from __future__ import annotations

import re

from engine.core.errors import ConfigError

CARD = "README.md"
MANIFEST = "snapshot.json"
DATA = "data"
PROVENANCE = "provenance"
#: Folder beside the snapshots where replaced revisions are kept, as `<name>.<revision>`.
SUPERSEDED = ".superseded"
#: Commitments of a sealed week, and its key once it is opened; it stays in the repository beside the snapshot.
SEAL = "seal.json"
#: Files that a Hub repository has beside ours.
HUB_FILES = frozenset({".gitattributes", SEAL})

_SPLIT = re.compile(r"\w+(\.\w+)*", re.ASCII)
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def usable_split(name: str) -> bool:
    """Whether `datasets` can write and read a split of that name."""
    return _SPLIT.fullmatch(name) is not None and name != "all"


def shard_name(split: str, index: int, count: int) -> str:
    """File name of one Parquet shard, as the Hub's own tools name them."""
    if not usable_split(split):
        raise ValueError(f"not a usable split name: {split!r}")
    return f"{split}-{index:05d}-of-{count:05d}.parquet"


def repo_id(pattern: str, name: str) -> str:
    """The Hub repository `owner/name` of a snapshot; `{name}` in the pattern stands for the snapshot's name.

    Raises `ConfigError` for something else than owner/name.
    """
    found = pattern.replace("{name}", name)
    if not _REPO.fullmatch(found) or "--" in found or ".." in found or len(found) > 96:
        raise ConfigError(f"'{pattern}' is not a Hub repository: write owner/{{name}} or owner/name in [hub] repo")
    return found

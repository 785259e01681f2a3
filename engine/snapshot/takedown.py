"""`nest takedown`: someone or something is removed from everywhere, and stays away.

By id of a row, address, domain, name or picture: the rows go from every snapshot folder here and every revision on
the Hub, the pictures and texts from blobs, caches, harvest, stages, predictions and reports. What remains is the id
(the tombstone), entries of the opt-out list that later builds consult, and a receipt that says what was removed and
what could not be. The Hub comes first: if it fails, everything here is still there to find the rows again.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, Field

from engine.core.errors import ConfigError
from engine.core.schema import Record, canonical_json
from engine.core.store import alone, locked, sha256_bytes, write_atomic
from engine.snapshot.hub_cleaning import HubPurge
from engine.snapshot.hub_client import hub
from engine.snapshot.hub_purge import purge_repository, without
from engine.snapshot.manifest import read_manifest
from engine.snapshot.matches import Matches, Wish, folders, match
from engine.snapshot.names import SUPERSEDED, repo_id
from engine.snapshot.optout import OptOutEntry, add_optout, entry
from engine.snapshot.purge import RECEIPTS, SNAPSHOTS, Purged, holding, purge, temporary_left

__all__ = ["Receipt", "Wish", "takedown"]


class Receipt(Record):
    """What a takedown removed, in numbers and ids: it holds no address, no name and no hash of a picture.

    `rows` maps snapshot folder to the ids that went, `lines` and `files` count by kind of place, `repositories` tells
    per Hub repository; `failures` are sentences on what could not be removed. `complete` if there are none. `alike` are
    those of the ids that went only because their picture is a copy of one that goes.
    """

    at: AwareDatetime | None = None
    dry_run: bool = False
    rows: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    alike: tuple[str, ...] = ()
    pictures: int = 0
    lines: dict[str, int] = Field(default_factory=dict)
    files: dict[str, int] = Field(default_factory=dict)
    repositories: dict[str, str] = Field(default_factory=dict)
    failures: tuple[str, ...] = ()
    path: str = ""

    @property
    def complete(self) -> bool:
        return not self.failures

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(sorted(set().union(*self.rows.values())))


def takedown(
    home: Path,
    wish: Wish,
    *,
    repos: Sequence[str] = (),
    token: str | None = None,
    endpoint: str | None = None,
    on_hub: bool = True,
    dry_run: bool = False,
    now: datetime | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Receipt:
    """Remove what a wish is about. `repos` are Hub repositories beside those that the snapshots here name.

    `on_hub` False leaves the Hub alone, which the receipt then says. `now` is the aware instant that stands in the
    receipt. Raises `ConfigError` for a wish that cannot be read, `BusyError` while a run writes into the home, and
    `TransientError` if the Hub could not be finished (then nothing was removed here: run it again).
    """
    wish.check()
    if not home.is_dir():
        raise ConfigError(f"there is no home {home}")
    with contextlib.nullcontext() if dry_run else _alone(home):
        return _takedown(home, wish, repos, token, endpoint, on_hub, dry_run, now, sleep)


def _takedown(
    home: Path,
    wish: Wish,
    repos: Sequence[str],
    token: str | None,
    endpoint: str | None,
    on_hub: bool,
    dry_run: bool,
    now: datetime | None,
    sleep: Callable[[float], None],
) -> Receipt:
    found = match(home, wish)
    named = {read_manifest(folder).hub_repo for folder in folders(home)} - {""}
    targets = sorted({*named, *(repo_id(repo, "{name}") for repo in repos if "{" not in repo)})
    if not dry_run:
        # first of all, so that whatever happens next nobody builds it again
        add_optout(home, _entries(wish, found))
    with _workplace(home) as work:
        purged_there = _on_hub(wish, targets, home, work, token, endpoint, dry_run, sleep) if on_hub else []
        names = {_name(folder, home) for folder in found.rows}
        if not dry_run:
            for number, (folder, ids) in enumerate(sorted(found.rows.items())):
                _replace(folder, ids, found, work / f"local-{number}")
        reports = {re.sub(r"\.r\d+$", "", name.removeprefix(f"{SUPERSEDED}/"), flags=re.ASCII) for name in names}
        purged = purge(home, found.needles, ids=found.ids, reports_of=sorted(reports), dry_run=dry_run)
    failures = [failure for item in purged_there for failure in item.failures]
    if targets and not on_hub:
        failures += [f"{repo} on the Hub was left alone" for repo in targets]
    if not dry_run:
        failures += _look_again(home, wish, found, purged)
    receipt = Receipt(
        at=now,
        dry_run=dry_run,
        rows={_name(folder, home): tuple(sorted(ids)) for folder, ids in sorted(found.rows.items())},
        alike=tuple(sorted(found.alike)),
        pictures=len(found.pictures.digests),
        lines=dict(sorted(purged.lines.items())),
        files=dict(sorted(purged.files.items())),
        repositories={item.repo: _words(item) for item in purged_there},
        failures=tuple(failures),
    )
    return receipt if dry_run else _written(home, receipt)


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Nobody else writes into the home meanwhile: what a run adds while things are searched would be missed."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone(home))
        for part in ("windows", "snapshots", "predictions"):
            for path in sorted((home / part).rglob(".*.lock")):
                stack.enter_context(locked(path))
        yield


def _entries(wish: Wish, found: Matches) -> list[OptOutEntry]:
    entries = [entry("id", name) for name in {*wish.ids, *found.ids}]
    entries += [entry("url", url) for url in wish.urls]
    entries += [entry("domain", domain) for domain in wish.domains]
    entries += [entry("entity", name) for name in wish.entities]
    entries += [entry("image", digest) for digest in found.pictures.digests]
    # likeness is kept only for pictures that were asked for, not for all of a domain or a person
    if wish.images or wish.ids:
        entries += [entry("phash", value) for value in found.pictures.phashes]
    return entries


def _on_hub(
    wish: Wish,
    targets: Sequence[str],
    home: Path,
    work: Path,
    token: str | None,
    endpoint: str | None,
    dry_run: bool,
    sleep: Callable[[float], None],
) -> list[HubPurge]:
    if not targets:
        return []
    done = []
    with hub(token, endpoint) as api:
        for number, repo in enumerate(targets):
            place = work / f"hub-{number}"
            place.mkdir()
            done.append(purge_repository(api, repo, wish, home=home, work=place, dry_run=dry_run, sleep=sleep))
    return done


def _replace(folder: Path, ids: set[str], found: Matches, work: Path) -> None:
    """The folder without the rows, put in its place; the old one goes for good."""
    without(folder, work, ids, found.needles)
    old = work.with_name(f"{work.name}-old")
    folder.rename(old)
    work.rename(folder)
    shutil.rmtree(old)


def _look_again(home: Path, wish: Wish, found: Matches, purged: Purged) -> list[str]:
    left = sorted({*purged.left, *holding(home, found.needles, ids=found.ids)})
    failures = [f"{name} still holds something of it: look at it by hand" for name in left]
    again = match(home, wish)
    failures += [f"{_name(folder, home)} still has {len(ids)} rows of it" for folder, ids in again.rows.items()]
    return failures + [f"{name} is left of an interrupted write: remove it" for name in temporary_left(home)]


def _words(item: HubPurge) -> str:
    if item.note:
        return item.note
    parts = [f"{len(item.ids)} rows", f"{len(item.tags)} tags moved", f"{item.large_files} large files deleted"]
    if item.rebuilt:
        parts = [f"{len(item.ids)} rows", "the repository was built anew"]
    return ", ".join(parts + ([f"branches {', '.join(item.branches)} deleted"] if item.branches else []))


def _name(folder: Path, home: Path) -> str:
    try:
        return folder.relative_to(home / SNAPSHOTS).as_posix()
    except ValueError:
        return folder.name


def _written(home: Path, receipt: Receipt) -> Receipt:
    digest = sha256_bytes(canonical_json(receipt.model_dump(mode="json")).encode())[:16]
    path = home / RECEIPTS / f"takedown-{digest}.json"
    kept = receipt.model_copy(update={"path": path.relative_to(home).as_posix()})
    write_atomic(path, (kept.line() + "\n").encode())
    return kept


@contextlib.contextmanager
def _workplace(home: Path) -> Iterator[Path]:
    """A folder for copies inside the home (one disk, so that renames are at once), gone at the end."""
    with tempfile.TemporaryDirectory(prefix=".tmp-takedown-", dir=home) as name:
        yield Path(name)

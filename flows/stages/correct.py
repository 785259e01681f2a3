"""Corrections: a new revision put in place, stored predictions scored on both, ranks compared."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError, NestError
from engine.core.schema import Prediction, ScoreReport, SnapshotManifest
from engine.core.store import Home, StageDir, locked, sha256_file

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.snapshot.amend import Change, RankChange

#: In the notes of predictions that were taken over from an earlier revision: the key under which they lie there.
CARRIED = "carried"


def correct(folder: Path, changes: Sequence[Change], *, measured: Mapping[str, str] | None = None) -> SnapshotManifest:
    """Write the next revision of a snapshot and put it in place; the old one moves to `.superseded`. `measured` are
    lines for its card."""
    from engine.snapshot.amend import amend
    from engine.snapshot.names import SUPERSEDED
    from engine.snapshot.revise import put_in_place

    with locked(folder.parent / f".{folder.name}.lock"):
        new = folder.parent / SUPERSEDED / f"{folder.name}.next"
        if new.exists():  # an earlier correction stopped between writing and renaming
            shutil.rmtree(new)
        new.parent.mkdir(parents=True, exist_ok=True)
        manifest = amend(folder, new, changes=changes, measured=measured)
        put_in_place(new, folder)
    return manifest


def check(folder: Path, changes: Sequence[Change], *, measured: Mapping[str, str] | None = None) -> int:
    """Everything that `correct` would refuse is refused here, and nothing is written; returns the rows left."""
    from engine.snapshot.amend import check as look

    return look(folder, changes=changes, measured=measured)


def carry(config: Config, folder: Path, old: Path) -> int:
    """Predictions of the old revision count for the new one: pictures and questions are the same. What was predicted
    for rows that went stays behind. Returns how many segmenters have predictions that 'nest score' need not make."""
    from inference.benchmarks.nest import load

    home = Home(config.home)
    if folder.parent.resolve() != home.snapshot("x").parent.resolve():
        return 0
    ids = {sample.id for sample in load(folder).without_images()}
    carried = 0
    for stored in sorted((home.root / "predictions" / folder.name).glob("*")):
        name = _segmenter(stored)
        done = False
        for before, after in _places(config, folder, old, name):
            if before.finished and not after.finished:
                kept = list(_known(before, ids))
                after.commit(kept, [], stage="predict", found=len(ids), run={**before.run(), CARRIED: before.path.name})
            done = done or after.finished
        carried += done
    return carried


def _places(config: Config, folder: Path, old: Path, name: str) -> Iterator[tuple[StageDir, StageDir]]:
    """Where a segmenter's predictions of both revisions lie: named by the window, and by the folder."""
    from engine.core.windows import parse_window
    from flows.run import run_for
    from flows.stages import score as stage
    from inference.benchmarks.nest import load

    own = config.model_copy(update={"score": config.score.model_copy(update={"segmenters": (name,)})})
    pairs = [(stage.task_for(str(folder), own), load(old).digest)]
    try:
        task = stage.task_of(run_for(own, parse_window(folder.name.removeprefix("NEST_")).label))
    except NestError:
        task = None
    if task is not None and task.name == folder.name:
        pairs.append((task, sha256_file(old / "snapshot.json")))
    for found, digest in pairs:
        try:
            before, after = stage.places(replace(found, digest=digest)), stage.places(found)
        except NestError:  # the segmenter cannot be fingerprinted here: it predicts again
            continue
        yield before[stage.label_of(name)], after[stage.label_of(name)]


def from_verdicts(home: Path, folder: Path) -> tuple[list[Change], dict[str, str]]:
    """What the reviews of this revision ask for, and the lines of the card. Raises `ConfigError` without a review."""
    from engine.snapshot.manifest import read_manifest
    from engine.snapshot.reviewed import changes_of
    from engine.snapshot.verdicts import all_of, summarise

    manifest = read_manifest(folder)
    verdicts = all_of(home, manifest.name)
    review = summarise(verdicts, digest=manifest.digest)
    if review is None or not review.random.judged:
        raise ConfigError(
            f"nobody judged a row of the random sample of {manifest.name} {manifest.revision}: run 'nest review' first"
        )
    return changes_of(verdicts, digest=manifest.digest), review.measured()


def ranks(home: Home, folder: Path, old: Path) -> list[RankChange]:
    """Places of the segmenters with stored predictions for this snapshot, before and after; by gIoU."""
    from engine.snapshot.amend import rank_changes

    before, after = _scores(home, old, folder.name), _scores(home, folder, folder.name)
    return rank_changes(before, after)


def _scores(home: Home, folder: Path, name: str) -> dict[str, float]:
    from inference.benchmarks.nest import load
    from inference.metrics.score import score

    benchmark = load(folder)
    ids = {sample.id for sample in benchmark.without_images()}
    stored = {label: _told_apart(_known(place, ids), label) for label, place in _stored(home, name)}
    if not stored or not ids:
        return {}
    report: ScoreReport = score(benchmark, stored)
    rows = [row for row in report.rows if not row.split and row.kind == "segmenter"]
    return {row.segmenter: value for row in rows if (value := row.value("giou")) is not None}


def _stored(home: Home, name: str) -> Iterator[tuple[str, StageDir]]:
    """Finished predictions of a snapshot, by segmenter; several runs of one segmenter are told apart by their key."""
    root = home.root / "predictions" / name
    for segmenter in sorted(root.glob("*")):
        places = [StageDir(path) for path in sorted(segmenter.glob("*")) if StageDir(path).finished]
        again = {place.run().get(CARRIED) for place in places}
        places = [place for place in places if place.path.name not in again]
        for place in places:
            label = _segmenter(segmenter)
            yield (label if len(places) == 1 else f"{label}#{place.path.name[:6]}"), place


def _segmenter(stored: Path) -> str:
    """Whose predictions lie in a folder, as they say themselves: a folder's name cannot hold all that a segmenter's
    may (a slash, a plus)."""
    for path in sorted(stored.glob("*")):
        if StageDir(path).finished and (first := next(StageDir(path).iterate(Prediction), None)) is not None:
            return first.segmenter
    return stored.name.replace("+", ":")


def _told_apart(found: Iterator[Prediction], label: str) -> Iterator[Prediction]:
    """Predictions as those of one run among several of a segmenter."""
    return (one if one.segmenter == label else one.model_copy(update={"segmenter": label}) for one in found)


def _known(place: StageDir, ids: set[str]) -> Iterator[Prediction]:
    return (found for found in place.iterate(Prediction) if found.sample_id in ids)

"""Snapshot: the finished rows as the dated folder that is published, under the window's name.

The folder is built beside its place, loaded back, and put there by one rename. One that another key would change
is replaced only on purpose (`--revise`): the old one is kept under `snapshots/.superseded`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from engine.core.errors import RefusedError, TransientError
from engine.core.schema import Annotation, Article, FunnelStep, Question, Rejected, Sample, SnapshotManifest
from engine.core.store import committed_directory, locked, register_writer, stage_key, sweep
from engine.snapshot.names import SUPERSEDED
from flows.run import Run
from flows.stages import annotate, ask, collect
from flows.stages.base import Done, split
from flows.stages.retold import retold


def key(run: Run) -> str | None:
    """The key of the window's snapshot; None while the masks are not there."""
    from engine.snapshot.build import VERSION

    masks = annotate.place(run)
    if masks is None or not masks.finished:
        return None
    questions = ask.place(run)
    assert questions is not None
    inputs = [*collect.place(run).digests(), *questions.digests(), *masks.digests()]
    config = {"snapshot": run.config.snapshot.keyed(), "repo": run.config.hub.repo, "name": run.snapshot_name}
    return stage_key("snapshot", VERSION, config, inputs)


def folder(run: Run) -> Path:
    return run.home.snapshot(run.snapshot_name)


def manifest(path: Path) -> SnapshotManifest | None:
    """`snapshot.json` of a folder, None if there is no snapshot."""
    try:
        raw = (path / "snapshot.json").read_text(encoding="utf-8")
    except OSError:
        return None
    return SnapshotManifest.read(json.loads(raw))


def current(run: Run) -> SnapshotManifest | None:
    """The manifest of the snapshot that this configuration gives; one of other settings in its place is None."""
    return _with_key(run, key(run))


def _with_key(run: Run, wanted: str | None) -> SnapshotManifest | None:
    there = manifest(folder(run))
    return there if there is not None and there.key == wanted else None


def finished(run: Run) -> bool:
    """Whether the snapshot in place is what this configuration gives, or the window is known to be too thin."""
    wanted = key(run)
    return wanted is not None and (_is_thin(run) or _with_key(run, wanted) is not None)


def thin_note(run: Run) -> str:
    """Why a window without a snapshot of this configuration has none; empty where it is not too thin for one."""
    if not _is_thin(run):
        return ""
    masks = annotate.place(run)
    assert masks is not None
    least = run.config.flows.min_rows
    told = f"thin week: {masks.funnel().kept} rows, [flows] min_rows is {least}; no snapshot is built"
    there = manifest(folder(run))
    if there is not None:
        told += f", and the one in place ({there.revision}, {there.rows} rows) is of other input or settings"
    return told


def do(run: Run) -> Done:
    """Build the window's snapshot unless that is done."""
    wanted = key(run)
    if wanted is None:
        raise TransientError(f"the masks of {run.window.label} are not finished: run 'nest annotate' first")
    place = folder(run)
    if _is_thin(run) and _with_key(run, wanted) is None:
        masks = annotate.place(run)
        assert masks is not None
        return Done("snapshot", wanted, str(place), masks.funnel().kept, 0, False, thin_note(run))
    register_writer(run.home.root)
    with locked(place.parent / f".{place.name}.lock"):
        there = manifest(place)
        if there is not None and there.key == wanted:
            return Done("snapshot", wanted, str(place), there.rows, there.rows, False)
        if there is not None and not run.revise:
            raise RefusedError(
                f"{place} was made from other input or settings (key {there.key}, now {wanted}): "
                f"'--revise' makes revision r{_revisions(place) + 2}, the old one is kept aside"
            )
        sweep(place.parent)
        _replace(run, place, wanted, there)
    made = manifest(place)
    assert made is not None
    return Done("snapshot", wanted, str(place), made.rows, made.rows, True)


def _replace(run: Run, place: Path, wanted: str, there: SnapshotManifest | None) -> None:
    aside = place.parent / SUPERSEDED
    number = _revisions(place) + (2 if there is not None else 1)
    new = aside / f"{place.name}.next"
    if new.exists():  # an earlier run stopped between building and renaming
        import shutil

        shutil.rmtree(new)
    with committed_directory(new) as temporary:
        _build(run, temporary, wanted, f"r{number}", there)
    if there is not None:
        place.rename(aside / f"{place.name}.{there.revision}")
    new.rename(place)


def _revisions(place: Path) -> int:
    """How many earlier revisions were put aside."""
    return len(list((place.parent / SUPERSEDED).glob(f"{place.name}.r*")))


def _build(run: Run, into: Path, wanted: str, revision: str, there: SnapshotManifest | None) -> None:
    from engine.snapshot.build import build
    from engine.snapshot.carried import carried
    from engine.snapshot.optout import read_optout
    from engine.snapshot.reviewed import wrong_rows
    from engine.snapshot.samples import join
    from engine.snapshot.verdicts import all_of, summarise

    masks, questions = annotate.place(run), ask.place(run)
    assert masks is not None
    assert questions is not None
    records = collect.place(run).read(Article), questions.read(Question), masks.read(Annotation)
    verdicts = all_of(run.home.root, run.snapshot_name)
    review = summarise(verdicts)
    previous = folder(run) if there is not None else None
    judged = {verdict.sample_id for told in verdicts.values() for verdict in told}
    corrections = carried(previous, judged=judged) if previous else {}
    answered = {name for name, change in corrections.items() if change.answer is not None}
    joined = join(
        *records,
        opt_out=read_optout(run.home.root, names=run.config.ask.opt_out),
        # rows that people found wrong stay away when the window is built again
        wrong=wrong_rows(verdicts, *records, answered=answered),
    )
    samples, dropped = split(joined, Sample)
    lost: list[Rejected] = []
    before = list(earlier(run))
    built = build(
        into,
        samples,
        window=run.window,
        config=run.config.snapshot,
        hub_repo=run.config.hub.repo,
        blobs=run.home.blobs,
        key=wanted,
        funnel=funnel(run),
        rejected=dropped,
        revision=revision,
        previous=previous,
        corrections=corrections,
        earlier=before,
        retold=retold(run.home, [sample.article for sample in samples], before),
        measured=review.measured() if review else None,
        losses=lost,
    )
    # what was left out here, by item: the snapshot itself only counts it
    run.home.stage(run.window, "snapshot", wanted).commit([], lost, stage="snapshot", found=built.rows + len(lost))


def earlier(run: Run) -> Iterator[Path]:
    """Snapshots of windows that ended before this one began, oldest first, pilots left out."""
    for path in sorted(run.home.snapshot("x").parent.glob("NEST_*")):
        found = manifest(path) if "." not in path.name else None
        if found is not None and found.window.split("_")[-1] < f"{run.window.first:%y%m%d}":
            yield path


def funnel(run: Run) -> list[FunnelStep]:
    """The finished stages' counts, images apart from articles."""
    steps = []
    articles = collect.place(run)
    if articles.finished:
        steps += collect.funnel(articles)
    for place in (ask.place(run), annotate.place(run)):
        if place is not None and place.finished:
            steps.append(place.funnel())
    return steps


def _is_thin(run: Run) -> bool:
    masks = annotate.place(run)
    return masks is not None and masks.finished and masks.funnel().kept < run.config.flows.min_rows

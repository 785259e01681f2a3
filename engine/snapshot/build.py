"""The published folder of one window, from samples: `assemble` with rows prepared ahead by a few threads.

The folder is handed in empty; the caller makes it final with one rename
(`engine.core.store.committed_directory`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from engine.core.config import SnapshotSection
from engine.core.protocols import Blobs
from engine.core.schema import Code, Erratum, FunnelStep, ModelRef, Rejected, Sample, SnapshotManifest, Stage, Window
from engine.snapshot.amend import Change, changed
from engine.snapshot.assemble import VERSION, Edition, assemble
from engine.snapshot.carried import fitting
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import repo_id
from engine.snapshot.revise import REBUILT, changed_rows
from engine.snapshot.rows import Row, make_row

__all__ = ["VERSION", "build"]

#: Rows prepared ahead of the writer; each holds its pictures decoded for a moment.
AHEAD = 4


def build(
    folder: Path,
    samples: Sequence[Sample] | Iterator[Sample],
    *,
    window: Window,
    config: SnapshotSection,
    hub_repo: str,
    blobs: Blobs,
    key: str,
    funnel: Sequence[FunnelStep] = (),
    rejected: Sequence[Rejected] = (),
    models: Sequence[ModelRef] = (),
    revision: str = "r1",
    supersedes: str | None = None,
    errata: Sequence[Erratum] = (),
    tombstones: Sequence[str] = (),
    earlier: Sequence[Path] = (),
    retold: Mapping[str, Set[str]] | None = None,
    measured: Mapping[str, str] | None = None,
    sources_policy: str = "",
    previous: Path | None = None,
    because: str = REBUILT,
    corrections: Mapping[str, Change] | None = None,
    workers: int = 2,
    losses: list[Rejected] | None = None,
) -> SnapshotManifest:
    """Write the folder and return its manifest, which is also `snapshot.json`, the last file written.

    `samples` come from `samples.join`; a sequence is sorted by id here, an iterator must be in that order.
    `hub_repo` is `[hub] repo` ("" if nothing is pushed). `funnel` are the steps of the earlier stages; this stage's
    own step is added, with `rejected` (what the join left out) and the rows that could not be written. `models` are
    named beside those in the annotations and the question writers. `measured` holds label and result of what was
    checked by hand, `sources_policy` a sentence on how the sources were read; both stand on the card as they are.
    `earlier` are folders of snapshots to count the overlap with, `retold` gives by their names the addresses of
    articles that repeat a text of theirs. `previous` is the folder of the revision that this one replaces: its errata
    and tombstones are kept, and its differences are added to the errata with the reason `because`, which a push needs
    to replace it. `corrections` are made to the rows of their ids (see `carried.carried`).
    `workers` threads prepare pictures; the result does not depend on their number. `losses` is filled with what was
    left out, `rejected` among it.

    Raises `TerminalError` if a blob is damaged, an id comes twice, the disk is full, or what is loaded back with
    `load_dataset` is not what was to be written.
    """
    ordered = iter(sorted(samples, key=lambda item: item.id) if isinstance(samples, Sequence) else samples)
    lost = losses if losses is not None else []
    lost += rejected
    prior = read_manifest(previous) if previous else None

    def rows() -> Iterator[Row]:
        for row in _prepared(ordered, blobs=blobs, config=config, workers=workers):
            if isinstance(row, Rejected):
                lost.append(row)
            elif (change := (corrections or {}).get(row.id)) is None:
                yield row
            elif change.drop:
                lost.append(
                    Rejected(item=row.id, stage=Stage.SNAPSHOT, code=Code.REVIEWED_WRONG, detail=change.because)
                )
            else:
                yield changed(row, fitting(row, change))

    edition = Edition(
        window=window,
        config=config,
        hub_repo=repo_id(hub_repo, window.name) if hub_repo else "",
        key=key,
        funnel=lambda kept: (*funnel, _own_step(kept, lost)),
        models=models,
        revision=revision,
        supersedes=supersedes or (f"{prior.name}@{prior.revision}" if prior else None),
        errata=(*prior.errata, *errata) if prior else errata,
        # what was taken down once stays named as taken down
        tombstones=sorted({*tombstones, *(prior.tombstones if prior else ())}),
        earlier=earlier,
        retold=retold or {},
        measured=measured or {},
        sources_policy=sources_policy,
        compare_with=lambda found: (
            changed_rows(previous, found, revision=revision, because=because) if previous else ()
        ),
    )
    return assemble(folder, rows(), edition)


def _prepared(
    samples: Iterable[Sample], *, blobs: Blobs, config: SnapshotSection, workers: int
) -> Iterator[Row | Rejected]:
    """Rows in the order of the samples, prepared by threads a few ahead of the reader."""
    with ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="rows") as pool:
        waiting: deque[Future[Row | Rejected]] = deque()
        try:
            for sample in samples:
                waiting.append(pool.submit(make_row, sample, blobs=blobs, config=config))
                if len(waiting) >= AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _own_step(kept: int, lost: Sequence[Rejected]) -> FunnelStep:
    counts: dict[str, int] = {}
    for item in lost:
        counts[item.code.value] = counts.get(item.code.value, 0) + 1
    return FunnelStep(stage=Stage.SNAPSHOT.value, found=kept + len(lost), kept=kept, rejected=counts)

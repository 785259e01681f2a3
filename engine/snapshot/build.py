"""The published folder of one window: Parquet files, card and manifest, read back before it counts.

Rows are prepared and written one after another, so memory does not grow with the number of rows. The folder is
handed in empty; the caller makes it final with one rename (`engine.core.store.committed_directory`).
"""

from __future__ import annotations

import importlib.metadata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from engine.core.config import SnapshotSection
from engine.core.errors import TerminalError
from engine.core.protocols import Blobs
from engine.core.schema import (
    Erratum,
    FunnelStep,
    ModelRef,
    Rejected,
    Sample,
    SnapshotManifest,
    Stage,
    Window,
)
from engine.snapshot.card import CardFacts, render
from engine.snapshot.features import default_features, provenance_features
from engine.snapshot.manifest import file_digests, seal, to_bytes
from engine.snapshot.names import CARD, DATA, MANIFEST, PROVENANCE, repo_id
from engine.snapshot.overlap import Traces, overlaps
from engine.snapshot.parquet import ShardWriter
from engine.snapshot.readback import compare, row_digest
from engine.snapshot.rows import Row, make_row
from engine.snapshot.statistics import Statistics

#: Part of the stage's key: raise it when the same samples would give other bytes.
VERSION = "1"
#: Rows prepared ahead of the writer; each holds its pictures decoded for a moment.
AHEAD = 4
_LIBRARIES = ("nest-data-engine", "datasets", "huggingface_hub", "pyarrow", "pillow", "numpy", "pycocotools")


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
    measured: Mapping[str, str] | None = None,
    sources_policy: str = "",
    workers: int = 2,
) -> SnapshotManifest:
    """Write the folder and return its manifest, which is also `snapshot.json`, the last file written.

    `samples` come from `samples.join`; a sequence is sorted by id here, an iterator must be in that order.
    `hub_repo` is `[hub] repo` ("" if nothing is pushed). `funnel` are the steps of the earlier stages; this stage's
    own step is added, with `rejected` (what the join left out) and the rows that could not be written. `models` are
    named beside those in the annotations and the question writers. `measured` holds label and result of what was
    checked by hand, `sources_policy` a sentence on how the sources were read; both stand on the card as they are.
    `workers` threads prepare pictures; the result does not depend on their number.

    Raises `TerminalError` if a blob is damaged, an id comes twice, the disk is full, or what is loaded back with
    `load_dataset` is not what was to be written.
    """
    ordered = iter(sorted(samples, key=lambda item: item.id) if isinstance(samples, Sequence) else samples)
    repo = repo_id(hub_repo, window.name) if hub_repo else ""
    found = Statistics()
    traces = Traces()
    lost = list(rejected)
    used: set[ModelRef] = set(models)
    templates = 0
    digests: tuple[list[bytes], list[bytes]] = ([], [])
    group, shard = config.row_group_bytes, config.max_shard_bytes
    default, origin = default_features(config.publish), provenance_features()
    with (
        ShardWriter(folder / DATA, default, row_group_bytes=group, shard_bytes=shard) as data,
        ShardWriter(folder / PROVENANCE, origin, row_group_bytes=group, shard_bytes=shard) as provenance,
    ):
        for sample, row in _prepared(_ascending(ordered), blobs=blobs, config=config, workers=workers):
            if isinstance(row, Rejected):
                lost.append(row)
                continue
            data.write(row.default, row.size_bytes)
            provenance.write(row.provenance, 4_000)
            digests[0].append(row_digest(row.default))
            digests[1].append(row_digest(row.provenance))
            found.add(row.provenance, answer=row.default["answer"])
            traces.add(row.provenance, row.default["answer"])
            used |= set(sample.annotation.models) | _writer(sample)
            templates += sample.question.writer.name == "template"
    steps = (*funnel, _own_step(found.rows, lost))
    ordered_models = tuple(sorted(used, key=lambda item: (item.role, item.name, item.version, item.weights_sha256)))
    shared = overlaps(traces, earlier)
    facts = CardFacts(
        window=window,
        config=config,
        statistics=found,
        hub_repo=repo,
        revision=revision,
        supersedes=supersedes,
        funnel=steps,
        models=ordered_models,
        errata=errata,
        overlaps=shared,
        template_questions=templates,
        data_bytes=data.num_bytes,
        data_files_bytes=sum(path.stat().st_size for path in data.paths),
        provenance_bytes=provenance.num_bytes,
        provenance_files_bytes=sum(path.stat().st_size for path in provenance.paths),
        measured=measured or {},
        sources_policy=sources_policy,
    )
    (folder / CARD).write_text(render(facts), encoding="utf-8", newline="\n")
    compare(folder, config="default", split="train", features=default, expected=digests[0])
    compare(folder, config="provenance", split="train", features=origin, expected=digests[1])
    manifest = seal(
        SnapshotManifest(
            name=window.name,
            window=window.label,
            revision=revision,
            key=key,
            rows=found.rows,
            images=len(found.images),
            splits={"train": found.rows},
            files=file_digests(folder),
            funnel=steps,
            models=ordered_models,
            versions={"snapshot": VERSION, **{name: _version(name) for name in _LIBRARIES}},
            portable=found.portable > 0,
            template_questions=templates,
            supersedes=supersedes,
            errata=tuple(errata),
            overlaps=shared,
            tombstones=tuple(sorted(tombstones)),
            publish=config.publish,
        )
    )
    (folder / MANIFEST).write_bytes(to_bytes(manifest))
    return manifest


def _prepared(
    samples: Iterable[Sample], *, blobs: Blobs, config: SnapshotSection, workers: int
) -> Iterator[tuple[Sample, Row | Rejected]]:
    """Rows in the order of the samples, prepared by threads a few ahead of the reader."""
    with ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="rows") as pool:
        waiting: deque[tuple[Sample, Future[Row | Rejected]]] = deque()
        try:
            for sample in samples:
                waiting.append((sample, pool.submit(make_row, sample, blobs=blobs, config=config)))
                if len(waiting) >= AHEAD:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def _ascending(samples: Iterator[Sample]) -> Iterator[Sample]:
    last = ""
    for sample in samples:
        if sample.id <= last:
            raise TerminalError(f"the sample {sample.id} comes after {last}: ids are unique and in ascending order")
        last = sample.id
        yield sample


def _own_step(kept: int, lost: Sequence[Rejected]) -> FunnelStep:
    counts: dict[str, int] = {}
    for item in lost:
        counts[item.code.value] = counts.get(item.code.value, 0) + 1
    return FunnelStep(stage=Stage.SNAPSHOT.value, found=kept + len(lost), kept=kept, rejected=counts)


def _writer(sample: Sample) -> set[ModelRef]:
    writer = sample.question.writer
    return {ModelRef(role="question writer", name=writer.model or writer.name, version=writer.version)}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""

"""Ready rows become a snapshot folder: Parquet files, card, loading back, manifest. The shared end of every way to
make one: building it from samples, amending it, taking rows down, rehydrating it.

Rows are written one after another, so memory does not grow with their number.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.config import SnapshotSection
from engine.core.errors import TerminalError
from engine.core.schema import Erratum, FunnelStep, ModelRef, Overlap, SnapshotManifest, Window
from engine.core.windows import parse_window
from engine.snapshot.card import CardFacts, render
from engine.snapshot.features import default_features, provenance_features
from engine.snapshot.manifest import file_digests, seal, to_bytes
from engine.snapshot.names import CARD, DATA, MANIFEST, PROVENANCE
from engine.snapshot.overlap import Traces, overlaps
from engine.snapshot.parquet import ShardWriter
from engine.snapshot.readback import compare, row_digest
from engine.snapshot.rows import Row
from engine.snapshot.statistics import Statistics

#: Part of the snapshot stage's key: raise it when the same samples would give other bytes.
VERSION = "1"
_LIBRARIES = ("nest-data-engine", "datasets", "huggingface_hub", "pyarrow", "pillow", "numpy", "pycocotools")


@dataclass(frozen=True, slots=True)
class Edition:
    """Everything about a snapshot that is not a row. `hub_repo` is owner/name or ""; `funnel` gives the steps for
    the number of rows that were written; `earlier` are folders of snapshots to count the overlap with, `retold` gives
    by their names the addresses of articles that repeat a text of theirs, `overlaps` is what was counted before;
    `compare_with` gives errata beyond `errata` for the digests of the written rows by id."""

    window: Window
    config: SnapshotSection
    hub_repo: str
    key: str
    funnel: Callable[[int], Sequence[FunnelStep]]
    models: Sequence[ModelRef] = ()
    revision: str = "r1"
    supersedes: str | None = None
    errata: Sequence[Erratum] = ()
    tombstones: Sequence[str] = ()
    earlier: Sequence[Path] = ()
    retold: Mapping[str, Set[str]] = field(default_factory=dict)
    overlaps: Sequence[Overlap] = ()
    measured: Mapping[str, str] = field(default_factory=dict)
    sources_policy: str = ""
    compare_with: Callable[[Mapping[str, bytes]], Sequence[Erratum]] = lambda digests: ()


def edition_of(manifest: SnapshotManifest, **changes: Any) -> Edition:
    """The edition a manifest tells of, with changes; its funnel stays as it is unless given anew."""
    told: dict[str, Any] = {
        "window": parse_window(manifest.window),
        "config": SnapshotSection.model_validate(manifest.config),
        "hub_repo": manifest.hub_repo,
        "key": manifest.key,
        "funnel": lambda rows: manifest.funnel,
        "models": manifest.models,
        "revision": manifest.revision,
        "supersedes": manifest.supersedes,
        "errata": manifest.errata,
        "tombstones": manifest.tombstones,
        "overlaps": manifest.overlaps,
        "measured": manifest.measured,
        "sources_policy": manifest.sources_policy,
    }
    return Edition(**{**told, **changes})


def assemble(folder: Path, rows: Iterable[Row], edition: Edition) -> SnapshotManifest:
    """Write rows (ascending by id) and everything else into an empty folder; `snapshot.json` is written last.

    Raises `TerminalError` if an id comes twice or out of order, or if what `load_dataset` gives back is not what was
    to be written.
    """
    config = edition.config
    found, traces = Statistics(), Traces()
    used: set[ModelRef] = set(edition.models)
    templates = 0
    ids: list[str] = []
    digests: tuple[list[bytes], list[bytes]] = ([], [])
    default, origin = default_features(config.publish), provenance_features()
    group, shard = config.row_group_bytes, config.max_shard_bytes
    with (
        ShardWriter(folder / DATA, default, row_group_bytes=group, shard_bytes=shard) as data,
        ShardWriter(folder / PROVENANCE, origin, row_group_bytes=group, shard_bytes=shard) as provenance,
    ):
        for row in _ascending(rows):
            data.write(row.default, row.size_bytes)
            provenance.write(row.provenance, len(repr(row.provenance)))
            ids.append(row.id)
            digests[0].append(row_digest(row.default))
            digests[1].append(row_digest(row.provenance))
            found.add(row.provenance, answer=row.default["answer"])
            traces.add(row.provenance, row.default["answer"])
            used |= models_of(row.provenance)
            templates += row.provenance["writer"]["name"] == "template"
    steps = tuple(edition.funnel(found.rows))
    models = tuple(sorted(used, key=lambda item: (item.role, item.name, item.version, item.weights_sha256)))
    shared = (*edition.overlaps, *overlaps(traces, edition.earlier, retold=edition.retold))
    errata = (*edition.errata, *edition.compare_with(dict(zip(ids, digests[0], strict=True))))
    facts = CardFacts(
        window=edition.window,
        config=config,
        statistics=found,
        hub_repo=edition.hub_repo,
        revision=edition.revision,
        supersedes=edition.supersedes,
        funnel=steps,
        models=models,
        errata=errata,
        tombstones=tuple(sorted(edition.tombstones)),
        overlaps=shared,
        template_questions=templates,
        data_bytes=data.num_bytes,
        data_files_bytes=sum(path.stat().st_size for path in data.paths),
        provenance_bytes=provenance.num_bytes,
        provenance_files_bytes=sum(path.stat().st_size for path in provenance.paths),
        measured=edition.measured,
        sources_policy=edition.sources_policy,
    )
    (folder / CARD).write_text(render(facts), encoding="utf-8", newline="\n")
    compare(folder, config="default", split="train", features=default, expected=digests[0])
    compare(folder, config="provenance", split="train", features=origin, expected=digests[1])
    manifest = seal(
        SnapshotManifest(
            name=edition.window.name,
            window=edition.window.label,
            revision=edition.revision,
            key=edition.key,
            rows=found.rows,
            images=len(found.images),
            splits={"train": found.rows},
            files=file_digests(folder),
            funnel=steps,
            models=models,
            versions={"snapshot": VERSION, **{name: _version(name) for name in _LIBRARIES}},
            portable=found.portable > 0,
            template_questions=templates,
            supersedes=edition.supersedes,
            errata=errata,
            overlaps=shared,
            tombstones=tuple(sorted(edition.tombstones)),
            publish=config.publish,
            hub_repo=edition.hub_repo,
            config=config.model_dump(mode="json"),
            measured=dict(edition.measured),
            sources_policy=edition.sources_policy,
        )
    )
    (folder / MANIFEST).write_bytes(to_bytes(manifest))
    return manifest


def models_of(provenance: Mapping[str, Any]) -> set[ModelRef]:
    """The models that made one row: those of the annotation, and the question's writer."""
    writer = provenance["writer"]
    written = ModelRef(role="question writer", name=writer["model"] or writer["name"], version=writer["version"])
    return {written, *(ModelRef.model_validate(model) for model in provenance["models"])}


def _ascending(rows: Iterable[Row]) -> Iterator[Row]:
    last = ""
    for row in rows:
        if row.id <= last:
            raise TerminalError(f"the row {row.id} comes after {last}: ids are unique and in ascending order")
        last = row.id
        yield row


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""

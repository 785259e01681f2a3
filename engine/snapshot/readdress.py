"""The same snapshot for another repository: its data files as they are, card and manifest naming the new place.

A card whose usage example loads someone else's repository is worse than none; so a push to another place than the
folder was built for publishes this edition. It follows from the folder alone, so pushing twice gives the same bytes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from engine.core.config import SnapshotSection
from engine.core.errors import TerminalError
from engine.core.schema import FileDigest, SnapshotManifest
from engine.core.store import sha256_file
from engine.core.windows import parse_window
from engine.snapshot.card import CardFacts, read_card, render
from engine.snapshot.manifest import read_manifest, seal, to_bytes
from engine.snapshot.names import CARD, DATA, MANIFEST, PROVENANCE
from engine.snapshot.statistics import Statistics
from engine.snapshot.verify_rows import iterate


def readdress(folder: Path, out: Path, *, hub_repo: str) -> SnapshotManifest:
    """Write the edition of `folder` for `owner/name` into the empty folder `out`; data files are linked or copied."""
    manifest = read_manifest(folder)
    for item in manifest.files:
        if item.path != CARD:
            (out / item.path).parent.mkdir(parents=True, exist_ok=True)
            _link(folder / item.path, out / item.path)
    (out / CARD).write_text(_card(folder, manifest, hub_repo), encoding="utf-8", newline="\n")
    digest = FileDigest(path=CARD, sha256=sha256_file(out / CARD), size=(out / CARD).stat().st_size)
    files = tuple(digest if item.path == CARD else item for item in manifest.files)
    made = seal(manifest.model_copy(update={"files": files, "hub_repo": hub_repo}))
    (out / MANIFEST).write_bytes(to_bytes(made))
    return made


def _card(folder: Path, manifest: SnapshotManifest, hub_repo: str) -> str:
    try:
        _, _, infos = read_card((folder / CARD).read_text(encoding="utf-8"))
        sizes = {name: (int(info.dataset_size), int(info.download_size)) for name, info in infos.items()}
        data, provenance = sizes["default"], sizes["provenance"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TerminalError(f"{folder / CARD} cannot be read ({error}): check it with 'nest verify'") from error
    return render(
        CardFacts(
            window=parse_window(manifest.window),
            config=SnapshotSection.model_validate(manifest.config),
            statistics=_count(folder),
            hub_repo=hub_repo,
            revision=manifest.revision,
            supersedes=manifest.supersedes,
            funnel=manifest.funnel,
            models=manifest.models,
            errata=manifest.errata,
            tombstones=manifest.tombstones,
            overlaps=manifest.overlaps,
            template_questions=manifest.template_questions,
            data_bytes=data[0],
            data_files_bytes=data[1],
            provenance_bytes=provenance[0],
            provenance_files_bytes=provenance[1],
            measured=manifest.measured,
            sources_policy=manifest.sources_policy,
        )
    )


def _count(folder: Path) -> Statistics:
    """The card's figures, from the provenance and the answers; no picture is read."""
    import pyarrow.parquet as pq

    found = Statistics()
    answers: dict[str, str] = {}
    try:
        for path in sorted((folder / DATA).glob("*.parquet")):
            table = pq.read_table(path, columns=["id", "answer"])
            answers.update(zip(table["id"].to_pylist(), table["answer"].to_pylist(), strict=True))
        for path in sorted((folder / PROVENANCE).glob("*.parquet")):
            for row in iterate(path, batch=64):
                found.add(row, answer=answers[row["id"]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TerminalError(f"{folder} cannot be read ({error}): check it with 'nest verify'") from error
    return found


def _link(source: Path, target: Path) -> None:
    if not source.is_file():
        raise TerminalError(f"{source} is missing: check the folder with 'nest verify'")
    try:
        os.link(source, target)
    except OSError:
        # another disk, or one without links
        shutil.copyfile(source, target)

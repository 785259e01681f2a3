"""Corrections: a later revision of a snapshot with other answers or masks, or without some rows.

Ids stay, so that stored predictions still go with their rows and can be scored again; what changed stands in the
errata of the manifest and of the card. Nothing published is edited: the old revision keeps its tag.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from engine.core.errors import ConfigError, RefusedError
from engine.core.geometry import Mask
from engine.core.masks import decode_rle, encode_png, encode_rle
from engine.core.schema import Erratum, FunnelStep, Record, Rle, SnapshotManifest, why
from engine.snapshot.manifest import read_manifest
from engine.snapshot.masks_in import MaskError, read_mask
from engine.snapshot.plain_text import odd_character
from engine.snapshot.revise import next_revision, read_rows, rewrite
from engine.snapshot.rows import Row

Verdict = Literal["right", "wrong_answer", "wrong_mask", "wrong_entity", "bad_question", "drop"]


@dataclass(frozen=True, slots=True)
class Change:
    """One correction of one row. `answer` replaces the name (aliases are kept), `masks` maps the number of an image
    to its new mask, `drop` leaves the row out. `because` is published: it must not name what was removed."""

    id: str
    because: str
    answer: str | None = None
    masks: Mapping[int, Mask] = field(default_factory=dict)
    drop: bool = False

    def words(self) -> str:
        """What changes, for the errata."""
        if self.drop:
            return "removed"
        parts = ["answer"] if self.answer is not None else []
        parts += [f"mask {n}" for n in sorted(self.masks)]
        return ", ".join(parts)


class Review(Record):
    """A reviewer's verdict on one row, as one line of a JSON Lines file. `answer` goes with "wrong_answer"."""

    sample_id: str
    verdict: Verdict
    answer: str | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class RankChange:
    """A segmenter's place (from 1) and score before and after a correction."""

    name: str
    before: int
    after: int
    score_before: float
    score_after: float


def amend(
    folder: Path, out: Path, *, changes: Sequence[Change], measured: Mapping[str, str] | None = None
) -> SnapshotManifest:
    """Write the next revision of a snapshot folder into `out` and return its manifest.

    `measured` are lines for the card's "Quality", by label; with them a revision may change no row at all.
    `revise.put_in_place` makes it the current one. Raises what `check` raises.
    """
    manifest = read_manifest(folder)
    by_id = _by_id(changes, measured)
    revision = next_revision(manifest.revision)
    met: set[str] = set()

    def apply(row: Row) -> Row | None:
        change = by_id.get(row.id)
        if change is None:
            return row
        met.add(row.id)
        return None if change.drop else changed(row, change)

    dropped = sum(change.drop for change in changes)
    errata = tuple(
        Erratum(revision=revision, sample_id=name, change=by_id[name].words(), because=by_id[name].because)
        for name in sorted(by_id)
    )
    if measured and not changes:
        errata = (Erratum(revision=revision, sample_id="", change="card", because="its rows were reviewed"),)

    def funnel(kept: int) -> tuple[FunnelStep, ...]:
        if missing := sorted(by_id.keys() - met):
            raise _no_row(folder, missing[0])
        step = FunnelStep(
            stage=f"amend {revision}",
            found=kept + dropped,
            kept=kept,
            rejected={"reviewed_wrong": dropped} if dropped else {},
        )
        return (*manifest.funnel, step)

    return rewrite(
        folder,
        out,
        change=apply,
        revision=revision,
        supersedes=f"{manifest.name}@{manifest.revision}",
        errata=(*manifest.errata, *errata),
        funnel=funnel,
        measured={**manifest.measured, **(measured or {})},
    )


def check(folder: Path, *, changes: Sequence[Change], measured: Mapping[str, str] | None = None) -> int:
    """Make the changes in memory and write nothing; returns how many rows would be left.

    Raises `ConfigError` for an id that is not there, a change that changes nothing, a text or a mask that cannot be
    published, and `RefusedError` if two changes concern one row.
    """
    next_revision(read_manifest(folder).revision)
    by_id, met, kept = _by_id(changes, measured), set(), 0
    for row in read_rows(folder):
        change = by_id.get(row.id)
        if change is not None:
            met.add(row.id)
            if not change.drop:
                changed(row, change)
        kept += change is None or not change.drop
    if missing := sorted(by_id.keys() - met):
        raise _no_row(folder, missing[0])
    return kept


def _by_id(changes: Sequence[Change], measured: Mapping[str, str] | None) -> dict[str, Change]:
    by_id = {change.id: change for change in changes}
    if len(by_id) != len(changes):
        raise RefusedError("two changes concern the same row: put them together")
    if not changes and not measured:
        raise ConfigError("nothing to amend: give an answer, a mask or --drop")
    for change in changes:
        if not change.words():
            raise ConfigError(f"the change of {change.id} changes nothing: give an answer, a mask or --drop")
        if not change.because.strip():
            raise ConfigError(f"the change of {change.id} has no reason: say why with --because")
        if odd := odd_character(change.because):
            raise ConfigError(f"the reason of {change.id} holds {odd}, which cannot be seen: write it without")
    return by_id


def _no_row(folder: Path, name: str) -> ConfigError:
    return ConfigError(f"{folder} has no row {name!r}: 'nest show' finds rows by a word of the answer")


def mask_change(paths: Mapping[int, Path]) -> dict[int, Mask]:
    """Masks for a `Change` from picture files, by image number. Raises `ConfigError` for a file that is no mask."""
    found = {}
    for number, path in paths.items():
        try:
            read = read_mask(path.read_bytes())
        except (OSError, MaskError) as error:
            raise ConfigError(f"{path} is not a mask: {error}") from error
        if read.ignored.any():
            raise ConfigError(f"{path} has pixels to ignore, which a published mask cannot say: make them 0 or 1")
        if read.remarks:
            raise ConfigError(f"{path} is not a mask: {read.remarks[0].partition(':')[0]}; make it 0 and 255")
        found[number] = read.mask
    return found


def read_reviews(path: Path) -> list[Change]:
    """Changes from a file of verdicts: a wrong answer with a better one is replaced, every other wrong row dropped.

    Raises `ConfigError` with the line that does not fit.
    """
    changes = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            review = Review.read(json.loads(line))
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: not a review: {why(error)}") from error
        if review.verdict == "right":
            continue
        if odd := odd_character(review.answer or ""):
            raise ConfigError(f"{path}, line {number}: the answer holds {odd}, which cannot be seen: write it without")
        because = f"review: {review.verdict.replace('_', ' ')}"
        if review.verdict == "wrong_answer" and review.answer:
            changes.append(Change(review.sample_id, because, answer=review.answer))
        else:
            changes.append(Change(review.sample_id, because, drop=True))
    return changes


def rank_changes(before: Mapping[str, float], after: Mapping[str, float]) -> list[RankChange]:
    """Places of segmenters scored on both revisions, higher is better, sorted by the new place; ties share a place."""
    names = sorted(before.keys() & after.keys())

    def place(name: str, scores: Mapping[str, float]) -> int:
        return 1 + sum(scores[other] > scores[name] for other in names)

    found = [RankChange(name, place(name, before), place(name, after), before[name], after[name]) for name in names]
    return sorted(found, key=lambda item: (item.after, item.name))


def changed(row: Row, change: Change) -> Row:
    """The row with another answer or other masks. Raises `ConfigError` for an empty answer or a mask that cannot be."""
    default, provenance = dict(row.default), dict(row.provenance)
    if change.answer is not None:
        if not change.answer.strip():
            raise ConfigError(f"the new answer of {row.id} is empty")
        if odd := odd_character(change.answer):
            raise ConfigError(f"the new answer of {row.id} holds {odd}, which cannot be seen: write it without")
        if change.answer.strip() == default["answer"]:
            raise ConfigError(f"the answer of {row.id} is '{default['answer']}' already: it changes nothing")
        default["answer"] = change.answer.strip()
    for number, mask in change.masks.items():
        _put_mask(row.id, number, mask, default, provenance)
    return replace(row, default=default, provenance=provenance)


def _put_mask(name: str, number: int, mask: Mask, default: dict[str, Any], provenance: dict[str, Any]) -> None:
    count = len(provenance["masks"])
    if not 0 <= number < count:
        raise ConfigError(f"the row {name} has {count} images, there is no number {number}")
    size = (provenance["image_heights"][number], provenance["image_widths"][number])
    if mask.shape != size:
        told = f"{mask.shape[1]}x{mask.shape[0]}, its image {size[1]}x{size[0]}"
        raise ConfigError(f"the new mask {number} of {name} is {told}")
    if not mask.any():
        raise ConfigError(f"the new mask {number} of {name} is empty: use --drop to leave the row out")
    if mask.all():
        raise ConfigError(f"the new mask {number} of {name} covers the whole image: use --drop to leave the row out")
    present = provenance["masks"][number]
    if (decode_rle(Rle(size=size, counts=present["counts"])) == mask).all():
        raise ConfigError(f"the mask {number} of {name} is this one already: it changes nothing")
    rle = encode_rle(mask)
    told_mask = {"size": list(rle.size), "counts": rle.counts}
    provenance["masks"] = [*provenance["masks"][:number], told_mask, *provenance["masks"][number + 1 :]]
    # gate figures were those of the old mask
    provenance["gates"] = [*provenance["gates"][:number], [], *provenance["gates"][number + 1 :]]
    if "annotations" in default:
        data = encode_png(mask)
        digest = hashlib.sha256(data).hexdigest()[:8]
        item = {"bytes": data, "path": f"{name}_{number}_{digest}.png"}
        default["annotations"] = [*default["annotations"][:number], item, *default["annotations"][number + 1 :]]
    else:
        default["masks"] = provenance["masks"]

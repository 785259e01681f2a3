"""Checking the rows of a snapshot in one pass: every picture and mask is decoded, ids are held against each other.

Works on the published NEST layout too (pictures in rows, no provenance, no manifest). Memory is bounded by a few
rows; only ids and small digests are kept.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.masks import decode_rle
from engine.core.schema import Rle
from engine.snapshot.findings import Findings, Kind
from engine.snapshot.plain_text import odd_character

#: Rows of a batch read at once, and rows checked ahead by threads.
BATCH = 8
AHEAD = 8


@dataclass(slots=True)
class Seen:
    """What the pass over the default config leaves behind: per id the published pictures' sha256 and sizes
    (width, height) and the masks' digests, and the order of ids. `damaged` counts data files that could not be read to
    their end: ids that are missing then are no fault of their own."""

    rows: int = 0
    pictures: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    masks: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    last: str = ""
    damaged: int = 0


@dataclass(slots=True)
class _Checked:
    pictures: list[str] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    masks: list[bytes] = field(default_factory=list)
    notes: list[tuple[Kind, str]] = field(default_factory=list)


def mask_digest(mask: np.ndarray[Any, Any]) -> bytes:
    """A short digest of a boolean mask and its shape."""
    told = hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=16)
    told.update(repr(mask.shape).encode())
    return told.digest()


def iterate(path: Path, *, batch: int = BATCH) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file, a few at a time."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for found in file.iter_batches(batch_size=batch):
            yield from found.to_pylist()


def check_data(path: Path, name: str, seen: Seen, found: Findings, *, ordered: bool, workers: int = 2) -> None:
    """Check one data file and add its rows to `seen`."""
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="verify") as pool:
        waiting: deque[tuple[dict[str, Any], Future[_Checked]]] = deque()
        try:
            for row in iterate(path):
                waiting.append((row, pool.submit(_check_row, row)))
                if len(waiting) > AHEAD:
                    _take(*waiting.popleft(), name=name, seen=seen, found=found, ordered=ordered)
        except (OSError, ValueError) as error:
            seen.damaged += 1
            found.note(name, Kind.PARQUET_DAMAGED, f"cannot be read: {error}")
        while waiting:
            _take(*waiting.popleft(), name=name, seen=seen, found=found, ordered=ordered)


def _take(
    row: dict[str, Any], future: Future[_Checked], *, name: str, seen: Seen, found: Findings, ordered: bool
) -> None:
    checked = future.result()
    told = str(row.get("id"))
    seen.rows += 1
    if told in seen.pictures:
        found.note(name, Kind.ID_TWICE, f"the id {told} comes twice")
    elif ordered and told < seen.last:
        found.note(name, Kind.ID_ORDER, f"the id {told} comes after {seen.last}")
    seen.last = told
    seen.pictures[told] = tuple(checked.pictures)
    seen.sizes[told] = tuple(checked.sizes)
    seen.masks[told] = tuple(checked.masks)
    for column in ("id", "question", "answer"):
        if not str(row.get(column) or "").strip():
            found.note(name, Kind.TEXT_EMPTY, f"row {told}: {column} is empty")
        elif odd := odd_character(str(row[column])):
            found.note(name, Kind.TEXT_UNSEEN, f"row {told}: {column} holds {odd}, which cannot be seen")
    for kind, detail in checked.notes:
        found.note(name, kind, f"row {told}: {detail}")


def _check_row(row: dict[str, Any]) -> _Checked:
    out = _Checked()
    if "images" not in row:
        _check_addresses(row, out)
        return out
    images, masks = row["images"] or [], row.get("annotations") or []
    if not images:
        out.notes.append((Kind.NO_BYTES, "it has no image"))
    if len(images) != len(masks):
        out.notes.append((Kind.MASK_COUNT, f"{len(images)} images, {len(masks)} masks"))
    for n, image in enumerate(images):
        size = _check_image(image, n, out)
        if size and n < len(masks):
            _check_mask(masks[n], n, size, out)
    return out


def _check_addresses(row: dict[str, Any], out: _Checked) -> None:
    masks, urls = row["masks"] or [], row["image_urls"] or []
    if not urls or len(urls) != len(masks) or len(urls) != len(row["image_sha256"] or []):
        out.notes.append((Kind.MASK_COUNT, f"{len(urls)} addresses, {len(masks)} masks"))
    for n, told in enumerate(masks):
        try:
            mask = decode_rle(Rle(size=(told["size"][0], told["size"][1]), counts=told["counts"]))
        except (ValueError, IndexError, TypeError) as error:
            out.notes.append((Kind.MASK_BROKEN, f"mask {n}: {error}"))
            continue
        if not mask.any():
            out.notes.append((Kind.MASK_EMPTY, f"mask {n} is empty"))
        out.masks.append(mask_digest(mask))
        out.sizes.append((mask.shape[1], mask.shape[0]))


def _bytes(item: dict[str, Any] | None, what: str, out: _Checked) -> bytes | None:
    data = (item or {}).get("bytes")
    path = (item or {}).get("path")
    if path and ("/" in path or "\\" in path):
        out.notes.append((Kind.FOREIGN_PATH, f"{what} names the path {path} of another machine"))
    if not data:
        out.notes.append((Kind.NO_BYTES, f"{what} has no bytes"))
        return None
    return bytes(data)


def _decoded(data: bytes) -> PilImage.Image:
    """A picture with its pixels decoded. Raises ValueError whatever is wrong with the bytes."""
    try:
        with warnings.catch_warnings():
            # of odd metadata and large headers; what cannot be decoded raises all the same
            warnings.simplefilter("ignore")
            picture = PilImage.open(io.BytesIO(data))
            picture.load()
    except Exception as error:
        # Pillow's readers raise whatever damaged bytes lead them to
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return picture


def _check_image(item: dict[str, Any] | None, n: int, out: _Checked) -> tuple[int, int] | None:
    data = _bytes(item, f"image {n}", out)
    if data is None:
        return None
    try:
        picture = _decoded(data)
    except ValueError as error:
        out.notes.append((Kind.IMAGE_BROKEN, f"image {n} cannot be decoded: {error}"))
        return None
    size, turned = picture.size, picture.getexif().get(0x0112, 1)
    if turned not in (0, 1):
        out.notes.append((Kind.IMAGE_TURNED, f"image {n} still carries the orientation {turned}"))
        if isinstance(turned, int) and 5 <= turned <= 8:
            size = (size[1], size[0])
    out.pictures.append(hashlib.sha256(data).hexdigest())
    out.sizes.append(size)
    return size


def _check_mask(item: dict[str, Any] | None, n: int, size: tuple[int, int], out: _Checked) -> None:
    data = _bytes(item, f"mask {n}", out)
    if data is None:
        return
    try:
        picture = _decoded(data)
    except ValueError as error:
        out.notes.append((Kind.MASK_BROKEN, f"mask {n} cannot be decoded: {error}"))
        return
    mode, form, told = picture.mode, picture.format, picture.size
    if told != size:
        out.notes.append((Kind.MASK_SIZE, f"mask {n} is {told[0]}x{told[1]}, its image {size[0]}x{size[1]}"))
    if form != "PNG" or mode not in ("L", "1"):
        out.notes.append((Kind.MASK_MODE, f"mask {n} is {form} of mode {mode}, not an 8-bit or 1-bit PNG"))
        if mode not in ("L", "1"):
            return
    # counting grey values is cheaper than comparing arrays
    counts = picture.histogram()
    if sum(counts[1:255]):
        out.notes.append((Kind.MASK_MODE, f"mask {n} was not binary: it has values between 0 and 255"))
    pixels = np.asarray(picture)
    mask = pixels > 127 if mode == "L" else pixels.astype(bool)
    if not counts[255] and not mask.any():
        out.notes.append((Kind.MASK_EMPTY, f"mask {n} is empty"))
    out.masks.append(mask_digest(mask))


def check_provenance(path: Path, name: str, seen: Seen, known: set[str], found: Findings) -> bool:
    """Check one provenance file against the data; ids found are added to `known`. False if it is damaged."""
    try:
        for row in iterate(path, batch=64):
            told = str(row.get("id"))
            if told in known:
                found.note(name, Kind.ID_TWICE, f"the id {told} comes twice")
            known.add(told)
            if told not in seen.masks:
                if seen.damaged:
                    continue  # its row may well be in what could not be read
                found.note(name, Kind.PROVENANCE_EXTRA, f"the id {told} has no row in the data")
                continue
            _check_origin(row, told, name, seen, found)
    except (OSError, ValueError) as error:
        found.note(name, Kind.PARQUET_DAMAGED, f"cannot be read: {error}")
        return False
    return True


def _check_origin(row: dict[str, Any], told: str, name: str, seen: Seen, found: Findings) -> None:
    for column in ("article_url", "title", "domain", "entity_type", "question_kind", "models", "evidence", "writer"):
        if not row.get(column):
            found.note(name, Kind.PROVENANCE_INCOMPLETE, f"row {told}: {column} is empty")
        elif odd := odd_character(str(row[column])):
            found.note(name, Kind.TEXT_UNSEEN, f"row {told}: {column} holds {odd}, which cannot be seen")
    if row.get("published_at") is None or not row.get("date_witnesses"):
        found.note(name, Kind.PROVENANCE_INCOMPLETE, f"row {told}: no publication date or nothing that witnesses it")
    count = len(seen.masks[told])
    aligned = ("image_urls", "image_captions", "image_credits", "image_rights", "image_phashes", "image_sha256")
    for column in (*aligned, "boxes", "masks", "candidates", "bindings", "gates", "image_widths", "image_heights"):
        if len(row.get(column) or ()) != count:
            found.note(name, Kind.PROVENANCE_INCOMPLETE, f"row {told}: {column} does not go with its {count} images")
            return
    sizes = tuple(zip(row["image_widths"], row["image_heights"], strict=True))
    if sizes != seen.sizes[told]:
        found.note(name, Kind.PROVENANCE_DIFFERS, f"row {told}: sizes {sizes}, the images have {seen.sizes[told]}")
    if seen.pictures[told] and tuple(row["image_published_sha256"]) != seen.pictures[told]:
        found.note(name, Kind.PROVENANCE_DIFFERS, f"row {told}: the images have other hashes than told")
    for n, (mask, digest) in enumerate(zip(row["masks"], seen.masks[told], strict=True)):
        try:
            decoded = decode_rle(Rle(size=(mask["size"][0], mask["size"][1]), counts=mask["counts"]))
        except (ValueError, IndexError, TypeError) as error:
            found.note(name, Kind.MASK_BROKEN, f"row {told}, mask {n}: {error}")
            continue
        if mask_digest(decoded) != digest:
            found.note(name, Kind.PROVENANCE_DIFFERS, f"row {told}: mask {n} and its run lengths differ")

"""Predictions made elsewhere, read from files: the `Runner` called `files:PATH`.

Three forms:
- a folder of PNG: `<id>.png` for a sample with one image, `<id>_0.png`, `<id>_1.png` ... or `<id>/0.png` ... for more;
- `.jsonl`, one object per sample: `{"id": ..., "masks": [RLE or null, ...], "answer": ...}` with COCO RLE, where `mask`
  may stand for a list of one and `sample_id` for `id`, so that our own prediction files are read too;
- `.parquet` with `id` and `annotations` (a list of image structs, as in a snapshot) or `masks` (a list of RLE).

A sample without a prediction is a failure of kind `no_reply`, one that cannot be read `bad_reply`; neither is an empty
mask. How masks are encoded in PNG is `benchmarks.mask_files`' business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from engine.core.geometry import Mask
from engine.core.masks import decode_rle
from engine.core.protocols import EvalItem, Segmented
from engine.core.schema import Failure, ModelRef, Rle
from inference.benchmarks.mask_files import read_mask

_PLAIN_ID = re.compile(r"[\w.:@+-]{1,200}")


@dataclass(frozen=True, slots=True)
class _Stored:
    """One sample's prediction as found: per image an RLE, PNG bytes, or None; and the answer if one is written."""

    masks: tuple[Any, ...]
    answer: str | None = None


class FilesRunner:
    """Gives what the files hold. Raises `ConfigError` for a path that holds no predictions."""

    def __init__(self, path: Path) -> None:
        self.name = f"files:{path.name}"
        self.path = path
        self._table: Mapping[str, _Stored] | None = None
        if path.is_file():
            if path.suffix not in (".jsonl", ".parquet"):
                raise ConfigError(f"{path} is neither a folder of PNG nor a .jsonl or .parquet file")
            rows = _jsonl(path) if path.suffix == ".jsonl" else _parquet(path)
            self._table = _unique(path, rows)
        elif not path.is_dir():
            raise ConfigError(
                f"there are no predictions at {path}: name a folder of masks, a .jsonl or a .parquet file"
            )

    def models(self) -> tuple[ModelRef, ...]:
        return (ModelRef(role="files", name=self.path.name),)

    async def run(self, items: Sequence[EvalItem]) -> list[Segmented]:
        return [self._one(item) for item in items]

    def _one(self, item: EvalItem) -> Segmented:
        stored = self._folder(item) if self._table is None else self._table.get(item.sample_id)
        masks: list[Mask | None] = []
        failures: list[Failure | None] = []
        for place, image in enumerate(item.images):
            found = stored.masks[place] if stored is not None and place < len(stored.masks) else None
            mask, failure = _decode(found, (int(image.shape[0]), int(image.shape[1])))
            masks.append(mask)
            failures.append(failure)
        answer = stored.answer if stored is not None else None
        return Segmented(masks=tuple(masks), failures=tuple(failures), answer=answer)

    def _folder(self, item: EvalItem) -> _Stored | None:
        # an id is a file name here: anything that could leave the folder is no prediction
        if not _PLAIN_ID.fullmatch(item.sample_id) or item.sample_id in (".", ".."):
            return None
        found: list[bytes | None] = []
        for place in range(len(item.images)):
            names = [f"{item.sample_id}_{place}.png", f"{item.sample_id}/{place}.png"]
            if len(item.images) == 1:
                names.insert(0, f"{item.sample_id}.png")
            file = next((self.path / name for name in names if (self.path / name).is_file()), None)
            found.append(file.read_bytes() if file is not None else None)
        return _Stored(masks=tuple(found))


def _decode(found: Any, size: tuple[int, int]) -> tuple[Mask | None, Failure | None]:
    """A mask of the image's size, or the failure that stands for it."""
    if found is None:
        return None, Failure(kind="no_reply", detail="there is no prediction for this image")
    try:
        mask = read_mask(found).truth.mask if isinstance(found, bytes) else decode_rle(_rle(found))
    except (ValueError, KeyError, TypeError, OSError) as error:
        return None, Failure(kind="bad_reply", detail=f"not a mask: {error}"[:300])
    if mask.shape != size:
        told = f"a mask of {mask.shape[0]}x{mask.shape[1]} for an image of {size[0]}x{size[1]}"
        return None, Failure(kind="bad_reply", detail=told)
    return mask, None


def _rle(found: Mapping[str, Any]) -> Rle:
    height, width = found["size"]
    counts = found["counts"]
    if isinstance(counts, list):
        if not all(isinstance(run, int) and 0 <= run <= int(height) * int(width) for run in counts):
            raise ValueError("a run length is not a whole number within the image")
        from pycocotools import mask as coco

        packed = coco.frPyObjects({"size": [int(height), int(width)], "counts": counts}, int(height), int(width))
        counts = packed["counts"].decode("ascii")
    if isinstance(counts, bytes):
        counts = counts.decode("ascii")
    if not isinstance(counts, str):
        raise ValueError(f"counts are neither text nor a list, but {type(counts).__name__}")
    return Rle(size=(int(height), int(width)), counts=counts)


def _jsonl(path: Path) -> Iterator[tuple[str, _Stored]]:
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8"))
                yield str(row["id"] if "id" in row else row["sample_id"]), _stored(row)
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    f"{path}, line {number}: no prediction ({error}): it needs 'id' and 'masks'"
                ) from error


def _stored(row: Mapping[str, Any]) -> _Stored:
    masks = row["masks"] if "masks" in row else [row["mask"]]
    answer = row.get("answer")
    return _Stored(masks=tuple(masks or ()), answer=str(answer) if answer is not None else None)


def _parquet(path: Path) -> Iterator[tuple[str, _Stored]]:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except Exception as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {error}") from error
    names = set(file.schema_arrow.names)
    column = "masks" if "masks" in names else "annotations"
    key = "id" if "id" in names else "sample_id"
    if not {column, key} <= names:
        raise ConfigError(
            f"{path} has the columns {', '.join(sorted(names))}; it needs 'id' and 'masks' or 'annotations'"
        )
    wanted = [key, column, *(["answer"] if "answer" in names else [])]
    for batch in file.iter_batches(batch_size=256, columns=wanted):
        for row in batch.to_pylist():
            masks = tuple(
                entry["bytes"] if isinstance(entry, dict) and "bytes" in entry else entry for entry in row[column] or ()
            )
            # a snapshot's answer column is the truth, not a prediction
            answer = row.get("answer") if column == "masks" else None
            yield str(row[key]), _Stored(masks=masks, answer=answer)


def _unique(path: Path, rows: Iterator[tuple[str, _Stored]]) -> dict[str, _Stored]:
    found: dict[str, _Stored] = {}
    for sample_id, stored in rows:
        if sample_id in found:
            raise ConfigError(f"{path} has two predictions for '{sample_id}': keep one of them")
        found[sample_id] = stored
    return found

"""The three forms in which people hand in predictions, read one sample at a time.

- `.parquet`: `id`, and `masks` (a list of {size, counts} per sample, null for a failure) or `annotations` (a list of
  {bytes, path} of PNG masks, as in a snapshot); if wanted `answer`, `failure`, `no_target`, `segmenter`;
- `.jsonl`: one object per sample with the same names; `mask` may stand for a list of one, `sample_id` for `id`, counts
  may be uncompressed lists, so that our own prediction files are read too;
- a folder of PNG: `<id>.png` for a sample with one image, `<id>_0.png`, `<id>_1.png` ... or `<id>/0.png` ... for more.

Nothing is judged here but the form; whether a prediction fits its sample is `submission`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError, TerminalError

_NUMBERED = re.compile(r"(?P<id>.+)_(?P<place>\d{1,4})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Submitted:
    """One sample's prediction as found: `where` names it to a person; `cells` are a run-length mapping, PNG bytes or
    None per image; `absent` are the images that were not spoken of at all."""

    where: str
    id: Any
    cells: tuple[Any, ...]
    failure: tuple[Any, ...] = ()
    no_target: tuple[Any, ...] = ()
    answer: Any = None
    segmenter: Any = None
    absent: frozenset[int] = frozenset()


def submitted(path: Path, images: Mapping[str, int]) -> Iterator[Submitted | str]:
    """Predictions in a file or folder, and complaints about parts that hold none; `images` counts each sample's images.

    Raises `ConfigError` for a path in none of the forms, `TerminalError` for one that cannot be read at all.
    """
    if path.is_dir():
        return _folder(path, images)
    if not path.is_file():
        raise ConfigError(f"there are no predictions at {path}: name a folder of masks, a .jsonl or a .parquet file")
    if path.suffix == ".jsonl":
        return _lines(path)
    if path.suffix == ".parquet":
        return _table(path)
    raise ConfigError(f"{path} is neither a folder of PNG nor a .jsonl or .parquet file")


def _table(path: Path) -> Iterator[Submitted | str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if not {"id", "sample_id"} & set(names) or not {"masks", "annotations"} & set(names):
                told = ", ".join(sorted(names)) or "none"
                raise TerminalError(f"{path} needs the columns id and masks, it has {told}")
            known = [name for name in names if name in _COLUMNS]
            index = 0
            for batch in file.iter_batches(batch_size=64, columns=known):
                for row in batch.to_pylist():
                    yield _of(row, f"row {index}")
                    index += 1
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{path} cannot be read as Parquet: {error}") from error


_COLUMNS = frozenset({"id", "sample_id", "segmenter", "masks", "annotations", "failure", "no_target", "answer"})


def _lines(path: Path) -> Iterator[Submitted | str]:
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                yield f"line {number}: not JSON: {error}"
                continue
            if not isinstance(row, dict) or not {"id", "sample_id"} & row.keys():
                yield f"line {number}: no prediction: it needs 'id' and 'masks'"
            elif not {"masks", "mask", "annotations"} & row.keys():
                yield f"line {number} ({row.get('id', row.get('sample_id'))}): there are no masks"
            else:
                yield _of(row, f"line {number}")


def _of(row: Mapping[str, Any], where: str) -> Submitted | str:
    identity = row["id"] if "id" in row else row.get("sample_id")
    where = f"{where} ({identity})" if identity else where
    masks = row.get("masks") if row.get("masks") is not None else row.get("annotations")
    if masks is None and row.get("mask") is not None:
        masks = [row["mask"]]
    failure = row.get("failure")
    if failure is None and isinstance(row.get("failures"), list):  # our own files tell more than the kind
        failure = [one.get("kind") if isinstance(one, dict) else one for one in row["failures"]]
    lists = (masks or [], failure or [], row.get("no_target") or [])
    if not all(isinstance(one, list) for one in lists):
        return f"{where}: masks, failure and no_target are lists, one entry per image"
    cells = tuple(one["bytes"] if isinstance(one, dict) and one.get("bytes") is not None else one for one in lists[0])
    # a snapshot's own answer column is the truth and no prediction
    answer = row.get("answer") if row.get("annotations") is None else None
    return Submitted(where, identity, cells, tuple(lists[1]), tuple(lists[2]), answer, row.get("segmenter"))


def _folder(path: Path, images: Mapping[str, int]) -> Iterator[Submitted | str]:
    found: dict[str, dict[int, Path]] = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        if file.is_dir() or any(part.startswith(".") for part in name.parts):
            continue
        if file.suffix.lower() != ".png":
            yield f"{name}: not a PNG"
            continue
        identity, place = _name(name.with_suffix("").parts, images)
        if place in found.setdefault(identity, {}):
            yield f"{name}: image {place} of {identity} was there before"
        found[identity].setdefault(place, file)
    for identity, files in sorted(found.items()):
        count = images.get(identity, max(files) + 1)
        for place in sorted(set(files) - set(range(count))):
            yield f"{files[place].relative_to(path)}: {identity} has {count} images, there is no number {place}"
        cells = tuple(files[place].read_bytes() if place in files else None for place in range(count))
        absent = frozenset(set(range(count)) - files.keys())
        yield Submitted(", ".join(str(files[place].relative_to(path)) for place in sorted(files)), identity, cells,
                        absent=absent)  # fmt: skip


def _name(parts: Sequence[str], images: Mapping[str, int]) -> tuple[str, int]:
    """The sample and the image's number that a file's path stands for."""
    *above, stem = parts
    whole = "/".join(parts)
    if whole in images:
        return whole, 0
    if above and stem.isdecimal():
        return "/".join(above), int(stem)
    if (match := _NUMBERED.fullmatch(whole)) is not None and match["id"] in images:
        return match["id"], int(match["place"])
    return whole, 0

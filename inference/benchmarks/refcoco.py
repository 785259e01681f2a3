"""RefCOCO, RefCOCO+, RefCOCOg and gRefCOCO: referring expressions on COCO images.

A folder as `lichengunc/refer` has it: `refs(<split_by>).p` or `.json` (gRefCOCO: `grefs(unc).json`) beside
`instances.json`, and COCO's images in `images`. One sample per sentence. gRefCOCO's `ann_id` is a list, [-1] for
"nothing is there"; its mask is the union of its annotations. The file names in the references are not used (the
makers say that they are wrong); `instances.json` knows the images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import ConfigError, TerminalError
from engine.core.geometry import Mask
from engine.core.store import sha256_file
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask
from inference.benchmarks.safe_pickle import read_plain_pickle


@dataclass(frozen=True, slots=True)
class _Expression:
    id: str
    text: str
    image: int
    annotations: tuple[int, ...]


def load(
    source: Path | str, *, split: str = "val", split_by: str = "", images: str = "", sentences: str = "all"
) -> Benchmark:
    """A split of one of the four sets from its folder.

    `split_by` chooses among several reference files (unc, google, umd); `images` is the folder of COCO's images if
    it is not `images` inside; `sentences="first"` takes one sentence per object. Raises `ConfigError` for a folder
    or split that is not there, `TerminalError` naming file, record and reason.
    """
    if sentences not in ("all", "first"):
        raise ConfigError(f"sentences is all or first, got '{sentences}'")
    root = Path(source)
    file = _references(root, split_by)
    refs = read_plain_pickle(file) if file.suffix == ".p" else _json(file)
    instances_file = root / "instances.json"
    if not instances_file.is_file():
        raise ConfigError(f"{instances_file} is missing: the masks are in it")
    instances = _json(instances_file)
    sizes = {int(one["id"]): one for one in _list(instances, "images", instances_file)}
    masks = {int(one["id"]): one for one in _list(instances, "annotations", instances_file)}
    found, splits = _expressions(refs, file, split=split, first=sentences == "first")
    if not found:
        raise ConfigError(f"{file} has no split '{split}': it has {', '.join(sorted(splits))}")
    for one in found:
        if one.image not in sizes:
            raise TerminalError(f"{file}, {one.id}: {instances_file} has no image {one.image}")
        for annotation in one.annotations:
            if annotation not in masks:
                raise TerminalError(f"{file}, {one.id}: {instances_file} has no annotation {annotation}")
    folder = Path(images) if images else root / "images"
    digest = hashlib.sha256(f"{sha256_file(file)} {sha256_file(instances_file)} {split}".encode()).hexdigest()

    def read(with_images: bool) -> Iterator[BenchmarkSample]:
        return (_sample(one, sizes[one.image], masks, folder) for one in found)

    return Benchmark(name=f"{root.name}-{split}", revision=file.stem, digest=digest, count=len(found), read=read)


def polygons_mask(segmentation: Any, size: tuple[int, int]) -> Mask:
    """The mask (H, W) of COCO's `segmentation`: polygons, or run lengths with or without compression."""
    from pycocotools import mask as coco

    height, width = size
    if isinstance(segmentation, Mapping):
        rle: Any = segmentation
        if isinstance(segmentation.get("counts"), list):
            rle = coco.frPyObjects(dict(segmentation), height, width)
        elif isinstance(segmentation.get("counts"), str):
            from engine.core.masks import decode_rle
            from engine.core.schema import Rle

            return decode_rle(Rle(size=(height, width), counts=segmentation["counts"]))
        if list(rle["size"]) != [height, width]:
            raise ValueError(f"run lengths of {rle['size']} for an image of {[height, width]}")
    else:
        parts = [[float(value) for value in part] for part in segmentation if len(part) >= 6]
        if not parts:
            raise ValueError("no polygon with three corners")
        rle = coco.merge(coco.frPyObjects(parts, height, width))
    decoded: Mask = np.ascontiguousarray(coco.decode(rle)).astype(np.bool_)
    return decoded


def _references(root: Path, split_by: str) -> Path:
    files = sorted(path for path in root.glob("*refs(*).*") if path.suffix in (".json", ".p"))
    if split_by:
        files = [path for path in files if f"({split_by})" in path.name]
    # a converted JSON is preferred to the pickle beside it
    stems: dict[str, Path] = {}
    for path in files:
        if path.stem not in stems or path.suffix == ".json":
            stems[path.stem] = path
    if len(stems) != 1:
        named = ", ".join(path.name for path in files) or "none"
        raise ConfigError(f"{root} needs one file of references refs(...).p or .json (found: {named}): give split_by")
    return next(iter(stems.values()))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TerminalError(f"{path} cannot be read as JSON: {error}") from error


def _list(found: Any, key: str, file: Path) -> list[Any]:
    if not isinstance(found, Mapping) or not isinstance(found.get(key), list):
        raise TerminalError(f"{file}: a list '{key}' is expected")
    values: list[Any] = found[key]
    return values


def _expressions(refs: Any, file: Path, *, split: str, first: bool) -> tuple[list[_Expression], set[str]]:
    if not isinstance(refs, list):
        raise TerminalError(f"{file}: a list of references is expected, found {type(refs).__name__}")
    found, splits = [], set()
    for number, ref in enumerate(refs):
        try:
            splits.add(str(ref["split"]))
            if ref["split"] != split:
                continue
            ids = ref["ann_id"] if isinstance(ref["ann_id"], list) else [ref["ann_id"]]
            annotations = tuple(int(one) for one in ids if int(one) != -1)
            if annotations and len(annotations) != len(ids):
                raise ValueError(f"ann_id {ids} mixes objects with 'nothing is there'")
            texts = [(str(one["sent_id"]), str(one["sent"])) for one in ref["sentences"]]
            for sent_id, text in texts[:1] if first else texts:
                found.append(_Expression(f"{ref['ref_id']}-{sent_id}", text, int(ref["image_id"]), annotations))
        except (KeyError, TypeError, ValueError) as error:
            raise TerminalError(f"{file}, reference {number}: {error!r}") from error
    return found, splits


def _sample(one: _Expression, image: Mapping[str, Any], masks: Mapping[int, Any], folder: Path) -> BenchmarkSample:
    size = int(image["height"]), int(image["width"])
    path = folder / str(image["file_name"])

    def encoded() -> tuple[bytes, ...]:
        try:
            return (path.read_bytes(),)
        except OSError as error:
            raise TerminalError(f"{one.id}: the image {path} cannot be read: {error.strerror}") from error

    def decode_masks() -> tuple[TruthMask, ...]:
        whole = np.zeros(size, dtype=np.bool_)
        for annotation in one.annotations:
            try:
                whole |= polygons_mask(masks[annotation]["segmentation"], size)
            except (KeyError, TypeError, ValueError) as error:
                raise TerminalError(f"instances.json, annotation {annotation} ({one.id}): {error}") from error
        return (TruthMask(whole),)

    count = len(one.annotations)
    return BenchmarkSample(
        id=one.id,
        question=one.text,
        answer="",
        encoded=encoded,
        decode_masks=decode_masks,
        tags={"targets": "none" if not count else "one" if count == 1 else "several"},
        image_keys=(str(one.image),),
    )

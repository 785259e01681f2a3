"""ReasonSeg: a folder of `x.jpg` beside `x.json` with polygons, as LISA's `utils/data_processing.py` reads them.

Polygons are painted largest first, outline and inside, so that a small one stands over a large one; a label that
contains "ignore" paints pixels that no metric looks at, "flag" is skipped, everything else is the target. The first
of several texts is the question in val and test. Files without any target polygon (two of the published test set
are known) are left out and named in the notes; `missing="empty"` keeps them as samples without a target.
Format facts: LISA's README and loader; the polygons come as UTF-8 or, for some files, as cp1252.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from engine.core.errors import ConfigError, TerminalError
from engine.core.store import sha256_file
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask
from inference.benchmarks.mask_files import mask_size

TARGET, IGNORE = 1, 255
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".JPG")


@dataclass(frozen=True, slots=True)
class _Item:
    image: Path
    labels: Path
    texts: tuple[str, ...]
    is_sentence: bool
    shapes: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]


def load(
    source: Path | str, *, split: str = "", missing: Literal["skip", "empty"] = "skip", all_texts: str = ""
) -> Benchmark:
    """ReasonSeg from its folder, or from the folder of one split inside it.

    `all_texts="yes"` makes one sample of every text instead of the first (for the training set). Raises
    `ConfigError` where the folder holds no pairs of image and JSON, `TerminalError` naming file, record and reason
    for a file that cannot be read.
    """
    if missing not in ("skip", "empty"):
        raise ConfigError(f"missing is skip or empty, got '{missing}'")
    root = Path(source) / split if split else Path(source)
    paths = sorted(path for path in root.glob("*.json") if _image_of(path) is not None)
    if not paths:
        raise ConfigError(f"{root} holds no image with a JSON of the same name: give the folder of a ReasonSeg split")
    items, without = [], []
    digest = hashlib.sha256()
    for path in paths:
        item = _read(path)
        digest.update(f"{item.image.name} {sha256_file(item.image)} {sha256_file(path)}\n".encode())
        if any(label == "target" for label, _ in item.shapes) or missing == "empty":
            items.append(item)
        if not any(label == "target" for label, _ in item.shapes):
            without.append(path.name)
    everything = [(item, place) for item in items for place in range(len(item.texts) if all_texts == "yes" else 1)]

    def read(images: bool) -> Iterator[BenchmarkSample]:
        return (_sample(item, place) for item, place in everything)

    notes = []
    if without:
        said = "left out" if missing == "skip" else "kept as samples without a target"
        notes.append(f"{len(without)} files have no target polygon and are {said}: {', '.join(without)}")
    return Benchmark(
        name=f"ReasonSeg{'-' + split if split else ''}",
        revision="",
        digest=digest.hexdigest(),
        count=len(everything),
        read=read,
        notes=tuple(notes),
    )


def paint(shapes: tuple[tuple[str, tuple[tuple[float, float], ...]], ...], size: tuple[int, int]) -> TruthMask:
    """The mask (H, W) of labelled polygons ("target" or "ignore"), painted largest first."""
    import cv2

    canvas = np.zeros(size, dtype=np.uint8)
    painted = []
    for label, points in shapes:
        corners = np.array([points], dtype=np.int32)
        area = np.zeros(size, dtype=np.uint8)
        cv2.polylines(area, [corners], True, 1, 1)
        cv2.fillPoly(area, [corners], 1)
        painted.append((int(np.count_nonzero(area)), label, area))
    # a stable sort: of two polygons of one size the later one stands on top
    for _, label, area in sorted(painted, key=lambda one: -one[0]):
        canvas[area > 0] = IGNORE if label == "ignore" else TARGET
    ignore = canvas == IGNORE
    return TruthMask(canvas == TARGET, ignore if ignore.any() else None)


def _image_of(path: Path) -> Path | None:
    return next((found for suffix in IMAGE_SUFFIXES if (found := path.with_suffix(suffix)).is_file()), None)


def _read(path: Path) -> _Item:
    raw = path.read_bytes()
    try:
        found = json.loads(_text(raw))
    except ValueError as error:
        raise TerminalError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("shapes"), list) or not found.get("text"):
        raise TerminalError(f"{path}: text and shapes are expected, found {sorted(found) if found else found!r}")
    texts = (found["text"],) if isinstance(found["text"], str) else tuple(str(text) for text in found["text"])
    shapes = []
    for number, shape in enumerate(found["shapes"]):
        label = str(shape.get("label", "")).lower() if isinstance(shape, dict) else ""
        if "flag" in label:
            continue
        shapes.append(("ignore" if "ignore" in label else "target", _points(shape, f"{path}, shapes[{number}]")))
    image = _image_of(path)
    if image is None:
        raise TerminalError(f"{path}: the image beside it is gone")
    return _Item(image, path, texts, bool(found.get("is_sentence", False)), tuple(shapes))


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252")


def _points(shape: Any, where: str) -> tuple[tuple[float, float], ...]:
    try:
        points = tuple((float(x), float(y)) for x, y in shape["points"])
    except (KeyError, TypeError, ValueError) as error:
        raise TerminalError(f"{where}: points are pairs of numbers: {error!r}") from error
    if not points:
        raise TerminalError(f"{where}: a polygon without points")
    return points


def _sample(item: _Item, place: int) -> BenchmarkSample:
    def encoded() -> tuple[bytes, ...]:
        return (item.image.read_bytes(),)

    def decode_masks() -> tuple[TruthMask, ...]:
        return (paint(item.shapes, mask_size(item.image.read_bytes())),)

    return BenchmarkSample(
        id=item.image.stem if place == 0 else f"{item.image.stem}#{place}",
        question=item.texts[place],
        answer="",
        encoded=encoded,
        decode_masks=decode_masks,
        tags={"query": "sentence" if item.is_sentence else "phrase"},
        image_keys=(item.image.name,),
    )

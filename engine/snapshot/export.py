"""A snapshot in the formats that people's evaluators read: COCO with run lengths, and a ReasonSeg folder.

Both are written from a finished snapshot folder with pictures, rows in order, and by one rename. COCO: `images/` and
`annotations.json`, one annotation per mask with its question and answer beside the usual fields. ReasonSeg: per
picture a `.jpg` and a `.json` with the question as `text` and the mask as polygons labelled `target`; a mask with
holes is cut into pieces without, so that filling the polygons gives the mask back pixel by pixel.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.errors import ConfigError
from engine.core.geometry import Mask, mask_box
from engine.core.masks import encode_rle
from engine.core.schema import SnapshotManifest, canonical_json
from engine.core.store import committed_directory
from engine.snapshot.manifest import read_manifest
from engine.snapshot.revise import read_rows
from engine.snapshot.rows import Row

#: Categories of the COCO file, by the snapshot's entity types.
CATEGORIES = {"person": 1, "product": 2}


@dataclass(frozen=True, slots=True)
class Exported:
    """Where the export lies, and how many pictures and masks it has."""

    path: Path
    images: int
    masks: int


def export_coco(folder: Path, out: Path) -> Exported:
    """Write `out/images/*.jpg` and `out/annotations.json`. Raises `ConfigError` if `out` exists or there are no
    pictures."""
    manifest = _with_pictures(folder, out)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    with committed_directory(out) as place:
        (place / "images").mkdir()
        for row, number, jpeg, mask in _masks(folder):
            name = f"{row.id}_{number}.jpg"
            (place / "images" / name).write_bytes(jpeg)
            images.append({"id": len(images) + 1, "file_name": name, "width": mask.shape[1], "height": mask.shape[0]})
            annotations.append(_coco(len(annotations) + 1, len(images), row, number, mask))
        told = {
            "info": {"description": manifest.name, "version": manifest.revision, "url": manifest.hub_repo},
            "licenses": [],
            "categories": [{"id": number, "name": name} for name, number in sorted(CATEGORIES.items())],
            "images": images,
            "annotations": annotations,
        }
        (place / "annotations.json").write_text(canonical_json(told) + "\n", encoding="utf-8")
    return Exported(out, len(images), len(annotations))


def export_reasonseg(folder: Path, out: Path, *, split: str = "val") -> Exported:
    """Write `out/<split>/<id>_<n>.jpg` and `.json`. Raises `ConfigError` as `export_coco` does."""
    _with_pictures(folder, out)
    count = 0
    with committed_directory(out) as place:
        (place / split).mkdir()
        for row, number, jpeg, mask in _masks(folder):
            name = f"{row.id}_{number}"
            (place / split / f"{name}.jpg").write_bytes(jpeg)
            shapes: list[dict[str, Any]] = [
                {
                    "label": "target",
                    "labels": ["target"],
                    "shape_type": "polygon",
                    "image_name": f"{name}.jpg",
                    "points": points,
                    "group_id": None,
                    "group_ids": [None],
                    "flags": {},
                }
                for points in polygons(mask)
            ]
            told = {
                "text": [row.default["question"]],
                "is_sentence": True,
                "shapes": shapes,
                "answer": row.default["answer"],
            }
            (place / split / f"{name}.json").write_text(canonical_json(told) + "\n", encoding="utf-8")
            count += 1
    return Exported(out, count, count)


def polygons(mask: Mask) -> list[list[list[int]]]:
    """Polygons (x, y in pixels) whose filled union, borders included, is exactly the mask.

    Parts with holes are cut at a column through a hole, again and again; pieces that touch or share nothing are
    polygons of their own.
    """
    import cv2

    found: list[list[list[int]]] = []
    todo = [(mask.astype(np.uint8), 0, 0)]
    while todo:
        part, left, top = todo.pop()
        contours, hierarchy = cv2.findContours(part, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        if hierarchy is None:
            continue
        for n, contour in enumerate(contours):
            _, _, child, parent = hierarchy[0][n]
            if parent >= 0:
                continue
            if child < 0:
                found.append([[int(x) + left, int(y) + top] for x, y in contour[:, 0]])
                continue
            x, y, w, h = cv2.boundingRect(contour)
            alone = np.zeros((h, w), dtype=np.uint8)
            cv2.drawContours(alone, contours, n, 1, cv2.FILLED, hierarchy=hierarchy, maxLevel=1, offset=(-x, -y))
            alone &= part[y : y + h, x : x + w]
            hx, _, hw, _ = cv2.boundingRect(contours[child])
            cut = min(max(hx - x + hw // 2, 1), w - 1)
            todo.append((np.ascontiguousarray(alone[:, :cut]), left + x, top + y))
            todo.append((np.ascontiguousarray(alone[:, cut:]), left + x + cut, top + y))
    return sorted(found)


def _coco(number: int, image: int, row: Row, place: int, mask: Mask) -> dict[str, Any]:
    box = mask_box(mask)
    rle = encode_rle(mask)
    return {
        "id": number,
        "image_id": image,
        "category_id": CATEGORIES.get(row.provenance["entity_type"], 0),
        "segmentation": {"size": list(rle.size), "counts": rle.counts},
        "bbox": [box.x1, box.y1, box.width, box.height] if box else [0.0, 0.0, 0.0, 0.0],
        "area": int(np.count_nonzero(mask)),
        # COCO writes run lengths for crowds only; readers that look at the type take them for single objects too
        "iscrowd": 0,
        "question": row.default["question"],
        "answer": row.default["answer"],
        "sample_id": row.id,
        "image_number": place,
    }


def _masks(folder: Path) -> Iterator[tuple[Row, int, bytes, Mask]]:
    for row in read_rows(folder):
        pairs = zip(row.default["images"], row.default["annotations"], strict=True)
        for number, (image, annotation) in enumerate(pairs):
            mask = np.asarray(PilImage.open(io.BytesIO(annotation["bytes"]))) > 127
            yield row, number, image["bytes"], mask


def _with_pictures(folder: Path, out: Path) -> SnapshotManifest:
    manifest = read_manifest(folder)
    if manifest.publish != "bytes":
        raise ConfigError(f"{folder} has no pictures: run 'nest rehydrate' first and export what it writes")
    if out.exists():
        raise ConfigError(f"{out} exists: choose another place or remove it")
    return manifest

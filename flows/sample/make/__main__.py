"""`python -m flows.sample.make [folder]`: make scenes, truth and references anew, by default in the package itself.

The same script on the same versions of numpy, OpenCV and Pillow gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import cv2
import numpy as np

from engine.core.geometry import Floats, Mask
from engine.core.masks import encode_png
from flows.sample.make.backgrounds import PLACES
from flows.sample.make.compose import compose, develop
from flows.sample.make.cutouts import photo
from flows.sample.make.extras import write_extras
from flows.sample.make.outlines import ROCKET
from flows.sample.make.references import write_references
from flows.sample.make.rotate import stored_turned
from flows.sample.make.scenes import ENTITIES, SCENES, Scene

#: The part of the launch photograph that is shown, and by how much it is enlarged.
LAUNCH = (222, 112, 422, 412)


def make_scene(scene: Scene) -> tuple[bytes, dict[str, Mask]]:
    """The scene's JPEG and the true mask of each named thing by entity slug."""
    masks: dict[str, Mask] = {}
    if scene.place == "launch":
        pixels, mask = _launch(scene.size)
        masks["falcon-9"] = mask
    else:
        width, height = scene.size
        pixels, solid = compose(PLACES[scene.place](width, height, scene.seed), scene.things)
        for thing, mask in zip(scene.things, solid, strict=True):
            masks[ENTITIES[thing.name][0]] = mask
    data, _ = develop(pixels, seed=scene.seed)
    return (stored_turned(data, scene.exif) if scene.exif != 1 else data), masks


def _launch(size: tuple[int, int]) -> tuple[Floats, Mask]:
    x1, y1, x2, y2 = LAUNCH
    whole = photo(ROCKET.photo)
    part = whole[y1:y2, x1:x2].astype(np.float32)
    cover = ROCKET.alpha(*whole.shape[:2])[y1:y2, x1:x2]
    grown = cv2.resize(part, size, interpolation=cv2.INTER_CUBIC)
    return np.asarray(grown, np.float32), np.asarray(cv2.resize(cover, size, interpolation=cv2.INTER_LINEAR) > 0.5)


def make(folder: Path) -> None:
    """Write `site/images`, `truth` and `references` under the folder."""
    images, truth = folder / "site" / "images", folder / "truth"
    images.mkdir(parents=True, exist_ok=True)
    rows = []
    for scene in SCENES:
        data, masks = make_scene(scene)
        (images / f"{scene.slug}.jpg").write_bytes(data)
        entities = []
        for name, position in scene.names:
            slug, full, kind = ENTITIES[name]
            place = truth / scene.slug / f"{slug}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(encode_png(masks[slug]))
            entities.append({"name": full, "type": kind, "slug": slug, "position": position})
        digest = hashlib.sha256(data).hexdigest()
        width, height = scene.size
        rows.append({"scene": scene.slug, "sha256": digest, "width": width, "height": height, "entities": entities})
        print(f"{scene.slug}: {len(data) // 1024} KiB, {len(masks)} masks", file=sys.stderr)  # noqa: T201
    write_extras(images)
    write_references(folder / "references")
    (truth / "truth.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])

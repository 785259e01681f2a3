"""Reference pictures of every entity: what an encyclopedia or a shop would show, never the pixels of a scene.

Each differs from the scenes in scale, perspective, light and background; one of the set is grey and one mirrored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from engine.core.geometry import Floats
from flows.sample.make.backgrounds import PLACES
from flows.sample.make.compose import Placed, compose, develop, picture
from flows.sample.make.cutouts import photo
from flows.sample.make.scenes import ENTITIES

#: Things that lie on the floor: one reference looks at them from the side.
FLAT = frozenset({"vacuum"})
#: Longest side of the thing in a reference, pixels.
SIDE = 330
#: Other names an article or an answer may use.
ALIASES = {
    "collins": ("Collins", "Eileen M. Collins"),
    "hopper": ("Hopper", "Grace M. Hopper", "Grace Murray Hopper", "Rear Admiral Grace Hopper"),
    "smartphone": ("Nova 7", "Lumio Nova 7 smartphone"),
    "laptop": ("Corvid Book", "Corvid Book 14 laptop"),
    "console": ("Duo", "Playdeck Duo console"),
    "watch": ("Tidewatch", "Tidewatch 4 smartwatch"),
    "vacuum": ("M3", "Rondo M3 robot vacuum"),
    "camera": ("X1", "Merle X1 camera"),
    "bus": ("12E", "Vireo 12E electric bus"),
    "speaker": ("Drum", "Sonara Drum speaker"),
    "cup": ("Doppio", "Brasa Doppio cup"),
    "rocket": ("Falcon 9 rocket",),
}
#: When the reference pictures were out, for the retrieval's as-of date: real photographs long ago.
PUBLISHED = {"collins": "1999-07-01", "hopper": "1985-01-01", "cup": "2026-09-01", "rocket": "2015-02-11"}
RECENT = "2026-11-02"


@dataclass(frozen=True, slots=True)
class Look:
    """How a reference shows its thing."""

    place: str
    angle: float
    tilt: float
    lean: float
    gain: float
    mirror: bool = False
    grey: bool = False
    quality: int = 86
    squash: float = 1.0


LOOKS = (
    Look("desk", angle=-3, tilt=0.06, lean=0.02, gain=1.08),
    Look("curtain", angle=5, tilt=-0.05, lean=-0.05, gain=0.88, quality=80, squash=0.78),
    Look("hall", angle=-6, tilt=0.03, lean=0.04, gain=1.0, mirror=True),
    Look("brick", angle=2, tilt=0.09, lean=-0.02, gain=0.94, grey=True, quality=78),
)
#: A photograph as it is: file, the part shown (x1, y1, x2, y2), and the size it is reduced to.
PORTRAITS = {
    "collins": ("astronaut.png", (0, 0, 400, 400), 300),
    "hopper": ("grace_hopper.jpg", (40, 0, 500, 460), 320),
    "cup": ("coffee.png", (40, 0, 540, 400), 340),
    "rocket": ("rocket.jpg", (288, 112, 356, 410), 380),
}


def references(name: str) -> list[tuple[str, bytes]]:
    """(file name, JPEG bytes) of the entity drawn by the cut-out `name`."""
    found = []
    for index, look in enumerate(LOOKS):
        data, _ = develop(_show(name, look, seed=900 + index), seed=index + 7, quality=look.quality, grain=2.0)
        found.append((f"{index + 1}.jpg", data))
    if name in PORTRAITS:
        file, (x1, y1, x2, y2), side = PORTRAITS[name]
        part = photo(file)[y1:y2, x1:x2].astype(np.float32)
        share = side / max(part.shape[:2])
        part = cv2.resize(part, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
        graded = 255 * (part / 255) ** 0.85 * np.array((1.0, 0.97, 0.92))
        data, _ = develop(np.asarray(graded, np.float32), seed=99, quality=84, grain=1.5)
        found[3] = ("4.jpg", data)
    return found


def _show(name: str, look: Look, *, seed: int) -> Floats:
    source = picture(name)
    share = SIDE / max(source.shape[:2])
    squash = look.squash if name in FLAT else 1.0
    wide, tall = source.shape[1] * share, source.shape[0] * share * squash
    width, height = round(wide * 1.2 + 40), round(tall * 1.2 + 40)
    backdrop = PLACES[look.place](max(width, 240), max(height, 240), seed)[:height, :width]
    placed = Placed(
        name, width / 2, height / 2 + tall / 2, wide, look.angle, look.tilt, look.lean, look.mirror, look.gain, squash
    )
    scene, _ = compose(backdrop, (placed,))
    if look.grey:
        scene = np.repeat(scene.mean(axis=2, keepdims=True), 3, axis=2)
    return np.asarray(scene, np.float32)


def write_references(folder: Path) -> None:
    """Write one sub-folder per entity, with its pictures and names.json."""
    for name, (slug, full, kind) in ENTITIES.items():
        place = folder / slug
        place.mkdir(parents=True, exist_ok=True)
        for file, data in references(name):
            (place / file).write_bytes(data)
        names = {"name": full, "aliases": list(ALIASES[name]), "type": kind, "published": PUBLISHED.get(name, RECENT)}
        (place / "names.json").write_text(json.dumps(names, ensure_ascii=False) + "\n", encoding="utf-8")

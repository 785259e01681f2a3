"""The harder synthetic set: scenes of two to five people and products with true masks, for binding and for ROSE.

People are drawn and fictional, products are drawn; they overlap, are small, cut off by the border, mirrored, and some
have look-alikes beside them that the caption does not name. Captions give places in varied wording, or none at all.
The same (n, seed) gives the same pixels for one version of the libraries. Only for tests.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Floats, Image, Mask
from flows.sample.make.backgrounds import PLACES
from flows.sample.make.compose import Placed, warp
from flows.sample.make.compose import picture as product_picture
from support.drawn_people import draw_person
from support.synthetic_captions import Spoken, caption_for

WIDTH, HEIGHT = 800, 540
#: Drawings whose faces a face detector finds at full and at 0.6 of their size: binding is to be tested, not finding.
PEOPLE_SEEDS = (
    0, 1, 2, 5, 6, 8, 12, 15, 18, 21, 24, 28, 29, 34, 35, 37, 39, 40, 41, 43, 46, 47, 49, 50,
    51, 54, 55, 56, 64, 65,
)  # fmt: skip
GIVEN = ("Ada", "Bruno", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Lars", "Mina",
         "Noor", "Oskar", "Petra", "Rosa", "Samir", "Tilda", "Viktor", "Wanda", "Yusuf", "Zora", "Emil")  # fmt: skip
FAMILY = ("Ahlgren", "Barros", "Castell", "Dorn", "Eriksen", "Fabre", "Garrido", "Holub", "Ivanova", "Jansen", "Kovacs",
          "Lindqvist", "Moreau", "Novak", "Okafor", "Pereira", "Quist", "Rossi", "Santos", "Tanaka", "Urban", "Varga",
          "Winter", "Zeller")  # fmt: skip
#: Product drawing -> (maker's line, phrase, noun in captions).
LINES = {
    "smartphone": ("Lumio Nova", "smartphone", "smartphone"),
    "laptop": ("Corvid Book", "laptop", "laptop"),
    "console": ("Playdeck Duo", "game console", "console"),
    "watch": ("Tidewatch", "watch", "smartwatch"),
    "vacuum": ("Rondo M", "robot vacuum", "robot vacuum"),
    "camera": ("Merle X", "camera", "camera"),
    "speaker": ("Sonara Drum", "speaker", "speaker"),
}
#: Turns of hue by which models of one line differ, in degrees: a look-alike is another model of the line.
TURNS = (0, 75, 160, 240)
#: Where a shadow falls, as a shift for warpAffine.
SHADOW = np.array([[1, 0, 5], [0, 1, 6]], np.float32)


@dataclass(frozen=True, slots=True)
class TrueEntity:
    """A named thing with the mask (H, W) of what is seen of it. `position` are the caption's own place words."""

    name: str
    type: Literal["person", "product"]
    phrase: str
    mask: Mask
    position: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture, its named entities in the caption's order, and reference pictures by name.

    `decoys` are the masks of things that nobody names; `traits` says what is hard about the scene.
    """

    image: Image
    entities: tuple[TrueEntity, ...]
    caption: str
    references: Mapping[str, tuple[Image, ...]]
    decoys: tuple[Mask, ...] = ()
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Cast:
    """Somebody or something that can stand in a scene; `family` groups look-alikes."""

    key: str
    name: str
    type: Literal["person", "product"]
    phrase: str
    noun: str
    family: str


def scenes(n: int, seed: int = 0) -> Iterator[Scene]:
    """`n` scenes, about 3.2 named entities each; 100 hold more than 300."""
    for index in range(n):
        yield _scene(np.random.default_rng((seed, index)))


# ---------------------------------------------------------------- the cast


@functools.cache
def _people() -> tuple[_Cast, ...]:
    return tuple(
        # the second round through the given names takes other family names, so that no two people share both
        _Cast(
            f"person-{seed}", f"{GIVEN[k % 24]} {FAMILY[(k * 7 + 3 + k // 24) % 24]}", "person", "person", "", "person"
        )
        for k, seed in enumerate(PEOPLE_SEEDS)
    )


@functools.cache
def _products() -> tuple[_Cast, ...]:
    found = []
    for drawing, (line, phrase, noun) in LINES.items():
        for k, turn in enumerate(TURNS):
            gap = "" if len(line.split()[-1]) == 1 else " "
            found.append(_Cast(f"{drawing}-{turn}", f"{line}{gap}{3 + k}", "product", phrase, noun, drawing))
    return tuple(found)


@functools.cache
def _drawing(key: str) -> Floats:
    """RGBA of a cast member, about 400 pixels on its longer side."""
    kind, number = key.rsplit("-", 1)
    source = draw_person(int(number)) if kind == "person" else _turned(kind, int(number))
    share = 400 / max(source.shape[:2])
    alpha = source[..., 3]
    pre = np.dstack([source[..., :3] * alpha[..., None], alpha])
    small = cv2.resize(pre, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
    rgb = small[..., :3] / np.maximum(small[..., 3:], 1e-3)
    return np.dstack([np.clip(rgb, 0, 255), small[..., 3]]).astype(np.float32)


def _turned(drawing: str, degrees: int) -> Floats:
    source = product_picture(drawing)
    if not degrees:
        return source
    hsv = cv2.cvtColor(np.rint(source[..., :3]).astype(np.uint8), cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(np.int32) + degrees // 2) % 180
    # grey bodies have no hue to turn: another model is also darker or warmer
    rgb = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB).astype(np.float32) * (1.0 - 0.06 * TURNS.index(degrees))
    return np.dstack([np.clip(rgb, 0, 255), source[..., 3]]).astype(np.float32)


@functools.cache
def _place(name: str) -> Floats:
    return PLACES[name](WIDTH, HEIGHT, 17)


@functools.cache
def references_of(key: str) -> tuple[Image, ...]:
    """Three pictures of a cast member by its key, unlike any scene: other place, tilt and light; one mirrored."""
    source = _drawing(key)
    looks = (("desk", -4.0, 0.05, False, 1.05), ("hall", 5.0, -0.04, False, 0.9), ("curtain", 3.0, 0.06, True, 1.0))
    found = []
    for place, angle, tilt, mirror, gain in looks:
        height, width = round(source.shape[0] * 0.8) + 50, round(source.shape[1] * 0.8) + 50
        ground = _place(place)[:height, :width]
        height, width = ground.shape[:2]
        tall = source.shape[0] * 0.75
        placed = Placed(
            key, width / 2, (height + tall) / 2, source.shape[1] * 0.75, angle, tilt, mirror=mirror, gain=gain
        )
        layer = warp(source, placed, width=width, height=height)
        mixed = ground * (1 - layer[..., 3:]) + layer[..., :3]
        found.append(np.clip(np.rint(mixed), 0, 255).astype(np.uint8))
    return tuple(found)


# ---------------------------------------------------------------- a scene


def _scene(rng: np.random.Generator) -> Scene:
    traits: set[str] = set()
    named, extras = _choose(rng, traits)
    cast = [*named, *extras]
    order = rng.permutation(len(cast))
    layers = _layers([cast[k] for k in order], rng, traits)
    background = _place(sorted(PLACES)[int(rng.integers(len(PLACES)))])
    if rng.random() < 0.5:
        background = background[:, ::-1]
    scene, masks = _lay(background * float(rng.uniform(0.9, 1.08)), layers, rng)
    seen = {cast[k].key: mask for k, mask in zip(order, masks, strict=True)}
    # from left to right by what is seen of them
    row = sorted(cast, key=lambda one: float(np.flatnonzero(seen[one.key].any(0)).mean()))
    spoken = [Spoken(one.key, one.name, one.noun, one in named, one.type) for one in row]
    caption, told = caption_for(spoken, rng)
    if not any(told.values()):
        traits.add("no place words")
    by_key = {one.key: one for one in named}
    entities = tuple(
        TrueEntity(by_key[key].name, by_key[key].type, by_key[key].phrase, seen[key], place)
        for key, place in told.items()
    )
    return Scene(
        image=_shot(scene, rng),
        entities=entities,
        caption=caption,
        references={one.name: references_of(one.key) for one in named},
        decoys=tuple(seen[one.key] for one in extras),
        traits=frozenset(traits),
    )


def _choose(rng: np.random.Generator, traits: set[str]) -> tuple[list[_Cast], list[_Cast]]:
    count = int(rng.choice((2, 3, 4, 5), p=(0.22, 0.34, 0.28, 0.16)))
    persons = int(rng.integers(0, min(count, 3) + 1))
    people = [_people()[int(k)] for k in rng.choice(len(_people()), persons, replace=False)]
    lines = rng.choice(len(LINES), count - persons, replace=False)
    things = [_products()[int(k) * len(TURNS) + int(rng.integers(len(TURNS)))] for k in lines]
    extras: list[_Cast] = []
    if count < 5 and rng.random() < 0.35:
        family = things[int(rng.integers(len(things)))].family if things and rng.random() < 0.6 else "person"
        pool = [one for one in (*_people(), *_products()) if one.family == family and one not in (*people, *things)]
        extras.append(pool[int(rng.integers(len(pool)))])
        traits.add("look-alike")
    return [*people, *things], extras


def _layers(cast: list[_Cast], rng: np.random.Generator, traits: set[str]) -> list[Floats]:
    """One premultiplied layer per member, from left to right; people stand on the lower border."""
    slots = len(cast)
    step = WIDTH / slots
    crowd = rng.random() < 0.4
    if crowd:
        traits.add("overlapping")
    found = []
    for k, one in enumerate(cast):
        source = _drawing(one.key)
        ratio = source.shape[0] / source.shape[1]
        room = step * (1.22 if crowd else 0.92)
        small = rng.random() < 0.18
        if small:
            traits.add("small")
        wide = min(room, 330 / ratio if one.type == "product" else 400.0) * (0.5 if small else rng.uniform(0.78, 1.0))
        wide = max(wide, 74.0)
        x = step * (k + 0.5) + rng.uniform(-0.04, 0.04) * step
        tall = wide * ratio
        y = (
            HEIGHT + 1.0
            if one.type == "person"
            else float(rng.uniform(max(tall + 20, 250), max(tall + 30, HEIGHT - 30)))
        )
        if slots > 1 and k in (0, slots - 1) and rng.random() < 0.22:
            traits.add("cropped")
            x += (-0.26 if k == 0 else 0.26) * wide
        mirror = bool(rng.random() < 0.2)
        if mirror:
            traits.add("mirrored")
        placed = Placed(
            name=one.key,
            x=x,
            y=y,
            width=wide,
            angle=0.0 if one.type == "person" else float(rng.uniform(-9, 9)),
            tilt=float(rng.uniform(0, 0.06)) if one.type == "product" else 0.0,
            mirror=mirror,
            gain=float(rng.uniform(0.88, 1.1)),
        )
        found.append(warp(source, placed, width=WIDTH, height=HEIGHT))
    return found


def _lay(scene: Floats, layers: list[Floats], rng: np.random.Generator) -> tuple[Floats, list[Mask]]:
    """Lay the layers on each other in random order; masks of what is seen, in the layers' order."""
    masks: dict[int, Mask] = {}
    for k in (int(v) for v in rng.permutation(len(layers))):
        alpha = np.clip(layers[k][..., 3:], 0, 1)
        shade = cv2.GaussianBlur(cv2.warpAffine(alpha[..., 0], SHADOW, (WIDTH, HEIGHT)), (0, 0), 7)
        scene = scene * (1 - 0.3 * shade[..., None]) * (1 - alpha) + layers[k][..., :3]
        solid = alpha[..., 0] > 0.5
        masks = {other: mask & ~solid for other, mask in masks.items()}
        masks[k] = solid
    return scene, [masks[k] for k in range(len(layers))]


def _shot(scene: Floats, rng: np.random.Generator) -> Image:
    noisy = scene + rng.normal(0, 3.0, scene.shape)
    out = io.BytesIO()
    pixels = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    PilImage.fromarray(pixels).save(out, "JPEG", quality=int(rng.integers(78, 92)))
    with PilImage.open(out) as stored:
        return np.asarray(stored.convert("RGB"), np.uint8)

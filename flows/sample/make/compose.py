"""Putting cut-outs into a place: scale, tilt, light, shadow, camera noise, JPEG, and the true masks that result."""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Floats, Image, Mask
from flows.sample.make import outlines, products, products_more
from flows.sample.make.cutouts import cut_out

PICTURES = {
    "collins": lambda: cut_out(outlines.COLLINS),
    "hopper": lambda: cut_out(outlines.HOPPER),
    "cup": lambda: cut_out(outlines.CUP),
    "rocket": lambda: cut_out(outlines.ROCKET, inset=0),
    "smartphone": products.smartphone,
    "laptop": products.laptop,
    "console": products.console,
    "watch": products.watch,
    "vacuum": products_more.vacuum,
    "camera": products_more.camera,
    "bus": products_more.bus,
    "speaker": products_more.speaker,
}


@functools.cache
def picture(name: str) -> Floats:
    """The cut-out of that name, RGBA float32; do not write into it."""
    return PICTURES[name]()


@dataclass(frozen=True, slots=True)
class Placed:
    """A cut-out in a scene: `x`, `y` the middle of its lower edge, `width` in pixels before turning by `angle`
    degrees; `tilt` narrows its top by that share, `lean` shears it sideways; `gain` is its brightness."""

    name: str
    x: float
    y: float
    width: float
    angle: float = 0.0
    tilt: float = 0.0
    lean: float = 0.0
    mirror: bool = False
    gain: float = 1.0
    squash: float = 1.0
    shadow: float = 0.45


def warp(source: Floats, placed: Placed, *, width: int, height: int) -> Floats:
    """The cut-out in the scene's frame, RGBA float32 with premultiplied colours."""
    wide = max(8, round(placed.width))
    tall = max(8, round(placed.width * source.shape[0] / source.shape[1] * placed.squash))
    pre = np.dstack([source[..., :3] * source[..., 3:], source[..., 3]])
    method = cv2.INTER_AREA if wide < source.shape[1] else cv2.INTER_CUBIC
    pre = cv2.resize(pre, (wide, tall), interpolation=method)
    if placed.mirror:
        pre = np.ascontiguousarray(pre[:, ::-1])
    inset, shift = placed.tilt * wide / 2, placed.lean * tall
    corners = np.array(
        [(-wide / 2 + inset + shift, -tall), (wide / 2 - inset + shift, -tall), (wide / 2, 0), (-wide / 2, 0)], float
    )
    turn = np.deg2rad(placed.angle)
    middle = np.array((0.0, -tall / 2))
    spin = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    corners = (corners - middle) @ spin.T + middle + np.array((placed.x, placed.y))
    here = np.array([(0, 0), (wide, 0), (wide, tall), (0, tall)], np.float32)
    matrix = cv2.getPerspectiveTransform(here, corners.astype(np.float32))
    flags = cv2.INTER_LINEAR
    out = cv2.warpPerspective(pre.astype(np.float32), matrix, (width, height), flags=flags)
    out[..., :3] *= placed.gain
    return np.asarray(np.clip(out, 0, 255), np.float32)


def compose(place: Floats, things: tuple[Placed, ...]) -> tuple[Floats, list[Mask]]:
    """The scene and one true mask per thing, later things covering earlier ones."""
    scene = place.copy()
    height, width = scene.shape[:2]
    masks: list[Mask] = []
    for thing in things:
        layer = warp(picture(thing.name), thing, width=width, height=height)
        alpha = np.clip(layer[..., 3:], 0, 1)
        if thing.shadow:
            soft = cv2.GaussianBlur(layer[..., 3], (0, 0), 9)
            soft = cv2.warpAffine(soft, np.array([[1, 0, 7], [0, 1, 8]], np.float32), (width, height))
            scene *= 1 - thing.shadow * soft[..., None]
        scene = scene * (1 - alpha) + layer[..., :3]
        solid = alpha[..., 0] > 0.5
        masks = [mask & ~solid for mask in masks]
        masks.append(solid)
    return scene, masks


def develop(scene: Floats, *, seed: int, quality: int = 88, grain: float = 3.0) -> tuple[bytes, Image]:
    """Vignette, sensor noise and JPEG: the file's bytes and its pixels before compression."""
    rng = np.random.default_rng(seed)
    height, width = scene.shape[:2]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    lit = scene * (1 - 0.12 * (x**2 + y**2))[..., None]
    lit = cv2.GaussianBlur(lit, (0, 0), 0.55)
    lit = lit + rng.normal(0, grain, lit.shape) + rng.normal(0, grain / 2, (height, width, 1))
    pixels = np.clip(np.rint(lit), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, "JPEG", quality=quality, subsampling="4:2:0")
    return out.getvalue(), pixels

"""Places to put things: rooms, tables, streets and skies from bundled textures and noise, never flat.

Each function takes width, height and a seed, and gives RGB float32 (H, W, 3) in 0..255.
"""

from __future__ import annotations

import cv2
import numpy as np

from engine.core.geometry import Floats
from flows.sample.make.canvas import Colour, noise, ramp
from flows.sample.make.cutouts import photo


def _texture(name: str, height: int, width: int, *, zoom: float, dark: Colour, light: Colour) -> Floats:
    """A grey texture photograph, mirrored until it fills the area and coloured from `dark` to `light`."""
    tile = photo(name)[..., 0].astype(np.float32) / 255
    tile = cv2.resize(tile, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA if zoom < 1 else cv2.INTER_CUBIC)
    tile = np.block([[tile, tile[:, ::-1]], [tile[::-1], tile[::-1, ::-1]]])
    tile = np.tile(tile, (height // tile.shape[0] + 1, width // tile.shape[1] + 1))[:height, :width]
    low, high = np.percentile(tile, (2, 98))
    t = np.clip((tile - low) / (high - low), 0, 1)[..., None]
    return np.asarray(t * np.array(light) + (1 - t) * np.array(dark), np.float32)


def _blur(picture: Floats, sigma: float) -> Floats:
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), sigma), np.float32)


def _wood(height: int, width: int, rng: np.random.Generator, dark: Colour, light: Colour) -> Floats:
    y = np.mgrid[0:height, 0:width][0].astype(np.float32)
    drift = noise(height, width, cell=220, rng=rng) * 60
    streaks = cv2.resize(noise(height, max(width // 12, 8), cell=12, rng=rng), (width, height))
    t = 0.35 + 0.2 * np.sin((y + drift) / 7.0) + 0.5 * (streaks - 0.5)
    t = np.clip(t, 0, 1)[..., None]
    return np.asarray(t * np.array(light) + (1 - t) * np.array(dark), np.float32)


def hall(width: int, height: int, seed: int) -> Floats:
    """An exhibition hall out of focus: pale wall, panels, a strip of lamps."""
    rng = np.random.default_rng(seed)
    out = ramp(height, width, (206, 214, 222), (150, 160, 172))
    out += (noise(height, width, cell=160, rng=rng)[..., None] - 0.5) * 46
    for k in range(5):
        x = int(width * (k + rng.uniform(0.1, 0.5)) / 5)
        wide, tall = int(rng.integers(60, 150)), int(rng.integers(100, 230))
        tone = np.array((rng.uniform(120, 210), rng.uniform(150, 215), rng.uniform(170, 235)))
        top = int(rng.integers(40, 140))
        out[top : top + tall, x : x + wide] = 0.4 * out[top : top + tall, x : x + wide] + 0.6 * tone
    for k in range(9):
        cv2.circle(out, (int(width * (k + 0.5) / 9), 26), 11, (255, 250, 232), -1)
    return _blur(out, 9)


def library(width: int, height: int, seed: int) -> Floats:
    """Book shelves out of focus in pale, dusty colours."""
    rng = np.random.default_rng(seed)
    out = np.full((height, width, 3), (186, 164, 136), np.float32)
    shelf = 118
    for top in range(-30, height, shelf):
        x = 0
        while x < width:
            wide, tall = int(rng.integers(12, 34)), int(rng.integers(78, 106))
            tone = np.array((rng.uniform(130, 225), rng.uniform(140, 215), rng.uniform(130, 205)))
            out[max(top + shelf - 12 - tall, 0) : max(top + shelf - 12, 0), x : x + wide - 2] = tone
            x += wide
        out[max(top + shelf - 12, 0) : max(top + shelf, 0)] = (150, 118, 84)
    return _blur(out + (noise(height, width, cell=120, rng=rng)[..., None] - 0.5) * 30, 5)


def curtain(width: int, height: int, seed: int) -> Floats:
    """A stage curtain in folds of grey blue under a spot light."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    bend = noise(height, width, cell=300, rng=rng) * 50
    folds = 0.5 + 0.5 * np.sin((x + bend) / 21) * np.sin((x + bend) / 47 + 1)
    light = np.exp(-(((x - width / 2) / (0.6 * width)) ** 2) - ((y - height * 0.35) / (0.8 * height)) ** 2)
    tone = (0.55 + 0.35 * folds) * (0.55 + 0.6 * light)
    return np.asarray(tone[..., None] * np.array((150, 186, 206)), np.float32)


def table(width: int, height: int, seed: int) -> Floats:
    """A light wooden table, a wall out of focus behind it."""
    rng = np.random.default_rng(seed)
    out = _blur(hall(width, height, seed + 1) * 0.9, 6)
    edge = int(height * 0.3)
    top = _wood(height - edge, width, rng, (150, 112, 72), (214, 178, 130))
    fade = np.linspace(0.82, 1.08, height - edge)[:, None, None]
    out[edge:] = top * fade
    return _blur(out, 0.8)


def desk(width: int, height: int, seed: int) -> Floats:
    """A pale stone desk seen from above, with veins."""
    rng = np.random.default_rng(seed)
    base = ramp(height, width, (226, 224, 218), (188, 186, 182), angle=35)
    veins = np.abs(noise(height, width, cell=260, rng=rng, octaves=6) - 0.5) * 2
    base -= np.exp(-((veins / 0.045) ** 2))[..., None] * np.array((58, 54, 44))
    return (base + (noise(height, width, cell=18, rng=rng)[..., None] - 0.5) * 16).astype(np.float32)


def floor(width: int, height: int, seed: int) -> Floats:
    """A room: plaster wall, skirting, parquet floor."""
    rng = np.random.default_rng(seed)
    out = np.empty((height, width, 3), np.float32)
    edge = int(height * 0.34)
    wall = ramp(edge, width, (168, 186, 172), (140, 160, 150))
    out[:edge] = wall + (noise(edge, width, cell=50, rng=rng)[..., None] - 0.5) * 20
    boards = _wood(height - edge, width, rng, (120, 76, 44), (178, 124, 78))
    depth = np.arange(height - edge)
    for k in range(12):
        x = width * (k - 1) / 10
        slope = (x - width / 2) / width * 0.9
        seam = (x + slope * depth).astype(int)
        for row, column in zip(depth, seam, strict=True):
            if 0 <= column < width - 3:
                boards[row, column : column + 2] *= 0.55
    out[edge:] = boards
    out[edge - 14 : edge] = (226, 224, 216)
    return _blur(out, 0.9)


def street(width: int, height: int, seed: int) -> Floats:
    """A brick house front, a kerb and a road."""
    edge = int(height * 0.66)
    wall = _texture("brick.png", edge, width, zoom=0.42, dark=(122, 66, 54), light=(206, 156, 136))
    wall = _blur(wall, 2.2)
    road = _texture("gravel.png", height - edge, width, zoom=0.25, dark=(84, 86, 92), light=(138, 140, 146))
    out = np.vstack([wall, road]).astype(np.float32)
    out[edge - 8 : edge + 12] = (176, 174, 168)
    rng = np.random.default_rng(seed)
    return out * (0.75 + 0.4 * noise(height, width, cell=300, rng=rng)[..., None])


def lawn(width: int, height: int, seed: int) -> Floats:
    """Sky with clouds over a lawn."""
    rng = np.random.default_rng(seed)
    edge = int(height * 0.62)
    clouds = np.clip(noise(edge, width, cell=220, rng=rng, octaves=6) * 2.2 - 0.9, 0, 1)[..., None]
    sky = ramp(edge, width, (110, 158, 212), (190, 214, 232)) * (1 - clouds) + clouds * 246
    grass = _texture("grass.png", height - edge, width, zoom=0.7, dark=(112, 152, 84), light=(186, 214, 128))
    out = np.vstack([sky, grass]).astype(np.float32)
    ridge = edge - 24 - (noise(4, width, cell=120, rng=rng)[0] * 40).astype(int)
    for column in range(width):
        out[ridge[column] : edge, column] = (84, 118, 96)
    return _blur(out, 1.4)


def dome(width: int, height: int, seed: int) -> Floats:
    """A planetarium: the deep field on a blue dome."""
    stars = cv2.resize(photo("hubble_deep_field.jpg"), (width, height), interpolation=cv2.INTER_AREA).astype(np.float32)
    rng = np.random.default_rng(seed)
    glow = ramp(height, width, (52, 70, 128), (108, 140, 196))
    return _blur(glow + stars * 0.5 + (noise(height, width, cell=200, rng=rng)[..., None] - 0.5) * 30, 1.2)


def brick(width: int, height: int, seed: int) -> Floats:
    """A whitewashed brick wall."""
    rng = np.random.default_rng(seed)
    wall = _texture("brick.png", height, width, zoom=0.6, dark=(196, 196, 190), light=(228, 226, 218))
    return _blur(wall * (0.8 + 0.3 * noise(height, width, cell=280, rng=rng)[..., None]), 1.5)


PLACES = {place.__name__: place for place in (hall, library, curtain, table, desk, floor, street, lawn, dome, brick)}

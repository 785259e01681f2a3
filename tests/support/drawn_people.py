"""Drawn fictional persons for synthetic scenes: busts with a shaded face, so that a face detector finds them.

Nobody real is shown. A person is a function of a seed; two seeds differ in skin, hair, clothes, glasses, beard or hat.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from engine.core.geometry import Floats
from flows.sample.make.canvas import Canvas, Colour, noise

SKINS: tuple[Colour, ...] = (
    (242, 206, 180),
    (224, 178, 146),
    (196, 144, 108),
    (150, 102, 72),
    (112, 74, 52),
    (92, 60, 44),
)
HAIRS: tuple[Colour, ...] = (
    (36, 28, 24),
    (84, 54, 34),
    (150, 100, 50),
    (206, 170, 100),
    (150, 62, 34),
    (176, 176, 178),
)
CLOTHES: tuple[Colour, ...] = (
    (40, 60, 110), (160, 40, 50), (40, 110, 80), (210, 160, 50), (90, 60, 130), (60, 62, 70), (220, 216, 206),
    (30, 130, 150),
)  # fmt: skip
WIDTH, HEIGHT = 360, 430


def _scaled(colour: Colour, share: float) -> Colour:
    return (min(255.0, colour[0] * share), min(255.0, colour[1] * share), min(255.0, colour[2] * share))


def _round(colour: Colour, *, size: int = 60, dark: float = 0.62) -> Floats:
    """A disc of light on a colour: brightest left above the middle."""
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    light = np.clip(1.12 - dark * 0.55 * ((x + 0.25) ** 2 + (y + 0.2) ** 2), 0.4, 1.15)
    return np.asarray(np.clip(light[..., None] * np.array(colour), 0, 255), np.float32)


def draw_person(seed: int) -> Floats:
    """RGBA float32 (430, 360, 4), colours 0..255, alpha 0..1: head and shoulders, cut straight at the bottom."""
    rng = np.random.default_rng(seed)
    skin, hair = SKINS[int(rng.integers(6))], HAIRS[int(rng.integers(6))]
    cloth, second = (CLOTHES[int(k)] for k in rng.choice(len(CLOTHES), 2, replace=False))
    style, pattern = int(rng.integers(5)), int(rng.integers(5))
    wide, tall = 74 + rng.uniform(-8, 8), 100 + rng.uniform(-6, 8)
    c = Canvas(WIDTH, HEIGHT)
    if style in (1, 2):
        low = 300 if style == 2 else 230
        c.box(180 - wide - 26, 70, 180 + wide + 26, low, _round(_scaled(hair, 0.8)), r=70)
    _clothes(c, cloth, second, pattern, rng)
    c.box(146, 230, 214, 316, _round(_scaled(skin, 0.8)), r=22)
    c.oval(180, 316, 46, 22, _scaled(skin, 0.84))
    for side in (-1, 1):
        c.oval(180 + side * wide, 166, 10, 20, _round(_scaled(skin, 0.8)))
    c.oval(180, 160, wide, tall, _face(skin, wide, tall, rng))
    _features(c, skin, hair, rng)
    _hair(c, hair, style, wide, rng)
    if rng.random() < 0.3:
        for x in (146, 214):
            c.ring(x, 156, 29, 23, (30, 28, 32), line=5)
        c.line([(174, 152), (186, 152)], (30, 28, 32), w=5)
    if rng.random() < 0.16:
        c.box(96, 52, 264, 100, _scaled(second, 0.9), r=26)
        c.box(80, 92, 280, 108, _scaled(second, 0.6), r=8)
    picture = c.picture()
    grain = (noise(HEIGHT, WIDTH, cell=30, rng=rng)[..., None] - 0.5) * 16
    soft = cv2.GaussianBlur(picture[..., :3], (0, 0), 1.6) + grain
    return np.dstack([np.clip(soft, 0, 255), picture[..., 3]]).astype(np.float32)


def _face(skin: Colour, wide: float, tall: float, rng: np.random.Generator) -> Floats:
    """The front of a head as a height field lit from above left, in the square of the head's oval."""
    v, u = np.mgrid[-1:1:220j, -1:1:160j]
    side = np.abs(u)

    def bump(size: float, x: float, y: float, spread_x: float, spread_y: float) -> npt.NDArray[np.float64]:
        near = side - x if x else u
        return np.asarray(size * np.exp(-((near / spread_x) ** 2) - ((v - y) / spread_y) ** 2))

    height = np.sqrt(np.clip(1.02 - u**2 - v**2, 0.0, None)) * 0.95
    height += bump(0.16, 0, 0.22, 0.13, 0.24) + bump(0.12, 0, 0.40, 0.15, 0.08) + bump(0.04, 0.17, 0.43, 0.07, 0.05)
    height += bump(-0.13, 0.44, -0.02, 0.2, 0.12) + bump(0.06, 0.4, -0.2, 0.3, 0.07)
    height += bump(0.06, 0.52, 0.34, 0.2, 0.17) + bump(0.06, 0, 0.69, 0.24, 0.05) + bump(-0.04, 0, 0.8, 0.25, 0.05)
    height += bump(0.07, 0, 0.9, 0.22, 0.09) + bump(-0.03, 0.33, 0.6, 0.06, 0.14)
    down, right = np.gradient(height, 2 / 220, 2 / 160)
    length = np.sqrt(1 + (0.8 * right) ** 2 + (0.8 * down) ** 2)
    lit = (0.30 * 0.8 * right + 0.42 * 0.8 * down + 0.86) / length
    tone = np.clip(0.42 + 0.72 * lit, 0.25, 1.25)
    warm = np.exp(-(((side - 0.5) / 0.26) ** 2) - ((v - 0.36) / 0.22) ** 2)[..., None] * np.array((0.0, -0.08, -0.08))
    rough = 1 + (noise(220, 160, cell=9, rng=rng)[..., None] - 0.5) * 0.07
    return np.clip(tone[..., None] * np.array(skin) * (1 + warm) * rough, 0, 255).astype(np.float32)


def _clothes(c: Canvas, cloth: Colour, second: Colour, pattern: int, rng: np.random.Generator) -> None:
    body = _round(cloth, size=160, dark=0.9)
    if pattern == 1:
        for k in range(0, 160, 16):
            body[k : k + 6] = np.array(second)
    elif pattern == 2:
        for k in range(0, 160, 20):
            body[k : k + 4] *= 0.55
            body[:, k : k + 4] *= 0.55
    elif pattern == 3:
        for _ in range(60):
            x, y = (int(v) for v in rng.integers(0, 154, 2))
            body[y : y + 6, x : x + 6] = np.array(second)
    c.box(18, 290, 342, 470, np.asarray(body, np.float32), r=76)
    if pattern == 0:
        c.poly([(120, 300), (240, 300), (180, 424)], (236, 236, 238))
        c.poly([(168, 312), (192, 312), (200, 426), (160, 426)], second)
    elif pattern == 4:
        c.poly([(112, 302), (180, 420), (150, 430), (86, 318)], _scaled(cloth, 0.7))
        c.poly([(248, 302), (180, 420), (210, 430), (274, 318)], _scaled(cloth, 0.7))
        for k in range(3):
            c.oval(180, 372 + k * 20, 5, 5, second)


def _features(c: Canvas, skin: Colour, hair: Colour, rng: np.random.Generator) -> None:
    iris: Colour = ((70, 46, 30), (60, 90, 120), (70, 100, 60), (40, 34, 30))[int(rng.integers(4))]
    brow = _scaled(hair, 0.7)
    for side in (-1, 1):
        x = 180 + side * 32
        c.oval(x, 157, 15, 7, (228, 222, 214))
        c.oval(x, 156, 7.5, 7.5, iris)
        c.oval(x, 156, 3.5, 3.5, (12, 10, 10))
        c.oval(x - 2.5, 153.5, 1.8, 1.8, (250, 250, 250))
        c.line([(x - 17, 156), (x - 7, 149), (x + 7, 149), (x + 17, 156)], (44, 30, 28), w=4)
        c.line([(x - 14, 162), (x, 165), (x + 14, 162)], _scaled(skin, 0.62), w=2, o=0.8)
        c.line([(x - 20, 139), (x - 4, 134), (x + 12, 135), (x + 21, 140)], brow, w=6, o=0.85)
    for side in (-1, 1):
        c.oval(180 + side * 9, 206, 5, 3, _scaled(skin, 0.42))
    if rng.random() < 0.2:
        c.oval(180, 246, 50, 20, _scaled(hair, 0.9), o=0.5)
        c.oval(180, 218, 34, 6, _scaled(hair, 0.9), o=0.6)
    smile = float(rng.uniform(2, 9))
    red = _scaled((skin[0] * 0.82, skin[1] * 0.5, skin[2] * 0.5), 1.0)
    c.poly([(150, 230 - smile), (170, 226), (180, 229), (190, 226), (210, 230 - smile), (180, 236)], _scaled(red, 0.85))
    c.poly([(150, 230 - smile), (180, 234), (210, 230 - smile), (196, 244), (180, 248), (164, 244)], red)
    if smile > 5:
        c.poly([(158, 231 - smile / 2), (180, 232), (202, 231 - smile / 2), (180, 239)], (246, 244, 240))
    c.line([(160, 256), (180, 259), (200, 256)], _scaled(skin, 0.78), w=3)


def _hair(c: Canvas, hair: Colour, style: int, wide: float, rng: np.random.Generator) -> None:
    left, right = 180 - wide - 10, 180 + wide + 10
    fill = _round(hair, dark=1.0)
    if style == 0:
        c.poly([(left, 150), (left + 8, 90), (130, 54), (180, 46), (230, 54), (right - 8, 90), (right, 150),
                (right - 18, 118), (210, 96), (150, 100), (left + 18, 120)], fill)  # fmt: skip
    elif style in (1, 2):
        part = float(rng.uniform(150, 210))
        c.poly([(left - 4, 190), (left - 2, 92), (130, 48), (180, 40), (230, 48), (right + 2, 92), (right + 4, 190),
                (right - 14, 140), (part + 20, 88), (part, 76), (part - 24, 96), (left + 14, 142)], fill)  # fmt: skip
    elif style == 3:
        for _ in range(26):
            a = float(rng.uniform(np.pi * 0.98, np.pi * 2.02))
            c.oval(
                180 + (wide + 2) * np.cos(a), 132 + 78 * np.sin(a), 24, 22, _scaled(hair, float(rng.uniform(0.8, 1.1)))
            )
    else:
        c.poly([(left + 6, 140), (left + 10, 104), (150, 66), (210, 66), (right - 10, 104), (right - 6, 140),
                (right - 22, 112), (180, 82), (left + 22, 112)], fill, o=0.85)  # fmt: skip

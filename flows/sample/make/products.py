"""Product pictures drawn from scratch, part one: phone, laptop, console, watch. No logos, no lettering.

Each function gives the product seen from the front as RGBA float32 (H, W, 4), colours 0..255, alpha 0..1, always the
same pixels. Screens show pictures and buttons, so that matching by local features has something to hold on to.
"""

from __future__ import annotations

import cv2
import numpy as np

from engine.core.geometry import Floats
from flows.sample.make.canvas import Canvas, Colour, noise, ramp
from flows.sample.make.cutouts import photo

BRIGHT: tuple[Colour, ...] = (
    (232, 76, 61), (241, 196, 15), (46, 204, 113), (52, 152, 219), (155, 89, 182), (230, 126, 34), (26, 188, 156),
    (236, 240, 241), (255, 121, 168),
)  # fmt: skip


def landscape(height: int, width: int, *, seed: int, sky: tuple[Colour, Colour], land: tuple[Colour, ...]) -> Floats:
    """A painted landscape: sky with clouds and a sun, and one ridge per colour of `land`."""
    rng = np.random.default_rng(seed)
    out = ramp(height, width, *sky)
    out += (noise(height, width, cell=width // 3, rng=rng)[..., None] - 0.5) * 70
    y, x = np.mgrid[0:height, 0:width]
    sun = np.exp(-((x - width * rng.uniform(0.2, 0.8)) ** 2 + (y - height * 0.25) ** 2) / (0.006 * width * height))
    out += sun[..., None] * np.array((255, 210, 120)) * 0.8
    for index, colour in enumerate(land):
        level = height * (0.45 + 0.5 * index / len(land))
        ridge = level + (noise(4, width, cell=width // 4, rng=rng)[0] - 0.5) * height * 0.4
        shade = np.array(colour) * (0.7 + 0.6 * noise(height, width, cell=24, rng=rng)[..., None])
        out = np.where((y > ridge[None])[..., None], shade, out)
    return np.clip(out, 0, 255).astype(np.float32)


def smartphone() -> Floats:
    """A phone whose screen shows a sunset, a widget and a grid of small pictures."""
    c = Canvas(320, 640)
    rng = np.random.default_rng(11)
    c.box(300, 170, 317, 240, (70, 74, 84), r=5)
    c.box(300, 265, 317, 345, (70, 74, 84), r=5)
    c.box(6, 4, 314, 636, ramp(60, 30, (150, 156, 170), (60, 64, 74), angle=20), r=46)
    c.box(11, 9, 309, 631, (18, 19, 22), r=42)
    wall = landscape(620, 300, seed=3, sky=((60, 30, 110), (250, 140, 80)), land=((90, 50, 110), (50, 30, 70)))
    c.box(19, 17, 301, 623, wall, r=34)
    c.box(38, 60, 282, 190, (245, 246, 250), r=22, o=0.85)
    for k in range(9):
        c.box(56 + k * 24, 172 - int(rng.integers(25, 90)), 72 + k * 24, 174, BRIGHT[k % 8], r=4)
    for row in range(4):
        for col in range(4):
            x, y = 42 + col * 61, 222 + row * 76
            c.box(x, y, x + 50, y + 50, BRIGHT[int(rng.integers(9))], r=13)
            glyph = int(rng.integers(4))
            ink = BRIGHT[int(rng.integers(9))] if glyph else (30, 34, 44)
            if glyph == 0:
                c.oval(x + 25, y + 25, 14, 14, ink)
            elif glyph == 1:
                c.poly([(x + 12, y + 38), (x + 25, y + 10), (x + 38, y + 38)], ink)
            elif glyph == 2:
                c.ring(x + 25, y + 25, 15, 15, ink, line=5)
            else:
                c.line([(x + 10, y + 34), (x + 20, y + 16), (x + 30, y + 34), (x + 40, y + 16)], ink, w=5)
    c.box(38, 540, 282, 606, (235, 235, 240), r=24, o=0.45)
    for k in range(4):
        c.box(52 + k * 58, 548, 98 + k * 58, 596, BRIGHT[(k * 2 + 1) % 9], r=13)
    c.oval(160, 38, 9, 9, (5, 5, 8))
    c.oval(160, 38, 4, 4, (40, 50, 90))
    return c.picture()


def laptop() -> Floats:
    """An open laptop with a star field on its screen, two windows of coloured lines, and a keyboard."""
    c = Canvas(760, 560)
    rng = np.random.default_rng(21)
    c.box(90, 6, 670, 392, ramp(30, 30, (120, 124, 132), (84, 88, 96), angle=45), r=18)
    c.box(95, 11, 665, 388, (16, 17, 19), r=15)
    stars = photo("hubble_deep_field.jpg")[100:640, 80:940]
    c.box(110, 26, 650, 372, cv2.convertScaleAbs(stars, alpha=1.5, beta=26).astype(np.float32))
    for x1, y1, x2, y2, ground in ((140, 56, 400, 300, (28, 34, 50)), (360, 150, 620, 350, (244, 245, 248))):
        c.box(x1, y1, x2, y2, ground, r=8)
        c.box(x1, y1, x2, y1 + 20, (200, 204, 214), r=8)
        for k in range(3):
            c.oval(x1 + 14 + k * 16, y1 + 10, 5, 5, BRIGHT[k])
        for row in range(int((y2 - y1 - 40) / 13)):
            start = x1 + 14 + 14 * int(rng.integers(4))
            while start < x2 - 60:
                end = start + int(rng.integers(14, 56))
                c.box(start, y1 + 32 + row * 13, end, y1 + 39 + row * 13, BRIGHT[int(rng.integers(7))], r=3)
                start = end + 8
                if rng.random() < 0.3:
                    break
    c.poly([(92, 390), (668, 390), (752, 536), (8, 536)], ramp(40, 40, (176, 180, 188), (206, 210, 218)))
    c.poly([(8, 536), (752, 536), (744, 554), (16, 554)], (112, 116, 124))
    for row in range(5):
        y1, y2 = 400 + row * 17, 413 + row * 17
        slant = (row * 17 + 10) * 0.57
        left, right = 118 - slant, 642 + slant
        step = (right - left) / 14
        for k in range(14):
            c.box(left + k * step + 2, y1, left + (k + 1) * step - 2, y2, (34, 36, 42), r=3)
            c.box(left + k * step + 8, y1 + 4, left + k * step + 14, y1 + 8, (190, 194, 200), o=0.8)
    c.poly([(300, 492), (460, 492), (474, 528), (286, 528)], (158, 162, 170))
    return c.picture()


def console() -> Floats:
    """A handheld game console in teal and orange with a tile game on its screen."""
    c = Canvas(760, 340)
    rng = np.random.default_rng(31)
    c.box(4, 10, 756, 330, (20, 90, 100), r=110)
    c.box(8, 12, 752, 324, ramp(30, 30, (64, 200, 200), (28, 130, 146)), r=106)
    c.box(8, 12, 190, 324, ramp(30, 30, (250, 150, 70), (222, 96, 40)), r=90)
    c.box(180, 24, 580, 316, (16, 18, 22), r=18)
    tiles = np.zeros((9, 13, 3), np.float32)
    for y in range(9):
        for x in range(13):
            choice = (110, 190, 255) if y < 4 else ((70, 160, 60) if y < 6 else (140, 90, 50))
            tiles[y, x] = np.array(choice) * rng.uniform(0.75, 1.15)
    c.box(196, 40, 564, 300, cv2.resize(tiles, None, fx=24, fy=24, interpolation=cv2.INTER_NEAREST))
    for x, y in ((240, 200), (300, 200), (330, 140), (420, 120), (450, 120), (510, 200)):
        c.box(x, y, x + 26, y + 26, (230, 170, 40), r=3)
        c.box(x + 5, y + 5, x + 21, y + 21, (160, 90, 20), r=2)
    c.oval(390, 205, 18, 22, (220, 40, 60))
    c.oval(384, 200, 4, 5, (255, 255, 255))
    c.oval(397, 200, 4, 5, (255, 255, 255))
    c.oval(500, 80, 24, 24, (255, 230, 90))
    c.oval(92, 105, 42, 42, (40, 42, 48))
    c.oval(92, 105, 30, 30, ramp(20, 20, (110, 114, 122), (50, 52, 58)))
    c.box(76, 184, 108, 274, (40, 42, 48), r=6)
    c.box(47, 213, 137, 245, (40, 42, 48), r=6)
    for k, (dx, dy) in enumerate(((0, -36), (36, 0), (0, 36), (-36, 0))):
        c.oval(662 + dx, 110 + dy, 19, 19, (24, 60, 66))
        c.oval(662 + dx, 108 + dy, 17, 17, BRIGHT[k])
    c.oval(662, 228, 40, 40, (40, 42, 48))
    c.oval(662, 228, 28, 28, ramp(20, 20, (110, 114, 122), (50, 52, 58)))
    for k in range(6):
        c.line([(600 + k * 10, 296 - k), (608 + k * 10, 276 - k)], (14, 70, 80), w=4)
    return c.picture()


def watch() -> Floats:
    """A watch with an upright striped strap and a dial of rings, ticks and a small moon."""
    c = Canvas(320, 640)
    rng = np.random.default_rng(41)
    for top, wide in ((4, 1), (430, -1)):
        near, far = (66, 88) if wide > 0 else (88, 66)
        c.poly([(far if wide > 0 else near - 22, top), (320 - (far if wide > 0 else near - 22), top),
                (320 - (near if wide > 0 else far + 22), top + 206), (near if wide > 0 else far + 22, top + 206)],
               ramp(30, 30, (178, 60, 48), (140, 40, 36)))  # fmt: skip
        for k in range(9):
            c.box(100, top + 10 + k * 22, 220, top + 20 + k * 22, (244, 214, 160) if k % 3 else (30, 50, 90), r=3)
    c.box(276, 290, 304, 350, (120, 122, 128), r=7)
    c.box(30, 176, 290, 464, ramp(30, 30, (196, 200, 208), (104, 108, 116), angle=60), r=76)
    c.box(42, 188, 278, 452, (14, 15, 18), r=66)
    c.oval(160, 318, 104, 104, ramp(30, 30, (24, 42, 92), (10, 16, 40)))
    for k in range(60):
        a = k * np.pi / 30
        inner = 84 if k % 5 == 0 else 92
        points = [(160 + r * np.sin(a), 318 - r * np.cos(a)) for r in (inner, 100)]
        c.line(points, (240, 240, 244) if k % 5 == 0 else (130, 150, 190), w=4 if k % 5 == 0 else 2)
    for k, (x, y) in enumerate(((120, 318), (160, 360), (200, 318))):
        c.oval(x, y, 22, 22, (32, 36, 46))
        c.ring(x, y, 22, 22, BRIGHT[k * 2], line=5)
        c.line([(x, y), (x + 12 * np.cos(k * 2.0), y + 12 * np.sin(k * 2.0))], (255, 255, 255), w=3)
    c.oval(160, 268, 16, 16, (240, 230, 190))
    c.oval(167, 264, 13, 13, (20, 34, 76))
    c.line([(160, 318), (110, 276)], (255, 255, 255), w=7)
    c.line([(160, 318), (214, 254)], (255, 190, 60), w=5)
    c.oval(160, 318, 8, 8, (255, 190, 60))
    for k in range(5):
        c.box(86 + k * 31, 206, 106 + k * 31, 214, BRIGHT[int(rng.integers(8))], r=4)
        c.box(86 + k * 31, 428, 106 + k * 31, 436, BRIGHT[int(rng.integers(8))], r=4)
    return c.picture()

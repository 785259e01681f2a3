"""Product pictures drawn from scratch, part two: vacuum, camera, bus, speaker. See `products` for the form."""

from __future__ import annotations

import numpy as np

from engine.core.geometry import Floats
from flows.sample.make.canvas import Canvas, noise, ramp
from flows.sample.make.products import BRIGHT, landscape


def vacuum() -> Floats:
    """A round robot vacuum from above, with a turret, a grille and three lit buttons."""
    c = Canvas(560, 560)
    rng = np.random.default_rng(51)
    c.oval(280, 280, 276, 276, (26, 28, 34))
    c.oval(280, 280, 266, 266, ramp(40, 40, (236, 240, 244), (168, 176, 188), angle=50))
    c.ring(280, 280, 240, 240, (44, 120, 200), line=14)
    c.ring(280, 280, 214, 214, (120, 126, 136), line=3)
    for k in range(48):
        a = k * np.pi / 24
        if 0.9 < a < 2.3:
            continue
        points = [(280 + r * np.cos(a), 280 + r * np.sin(a)) for r in (186, 206)]
        c.line(points, (70, 76, 88), w=6)
    c.oval(280, 190, 78, 78, (40, 44, 52))
    c.oval(280, 190, 68, 68, ramp(20, 20, (90, 96, 108), (36, 40, 48)))
    c.ring(280, 190, 48, 48, (220, 70, 50), line=6)
    c.oval(280, 190, 20, 20, (210, 214, 220))
    c.box(190, 300, 370, 420, (34, 38, 46), r=26)
    for row in range(5):
        for col in range(9):
            c.oval(208 + col * 18, 318 + row * 20, 5, 5, (150, 158, 170) if rng.random() < 0.7 else (60, 190, 220))
    for k, x in enumerate((206, 280, 354)):
        c.oval(x, 462, 24, 24, (56, 60, 70))
        c.ring(x, 462, 22, 22, BRIGHT[k + 1], line=5)
        c.line([(x - 8, 462), (x + 8, 462 - 6 + 6 * k)], (240, 240, 244), w=4)
    c.box(80, 240, 130, 330, (240, 150, 50), r=12)
    c.box(92, 256, 118, 268, (90, 50, 10), r=3)
    c.poly([(440, 250), (484, 284), (440, 318)], (60, 170, 110))
    return c.picture()


def camera() -> Floats:
    """A camera with a grained body, dials and a large lens."""
    c = Canvas(640, 460)
    rng = np.random.default_rng(61)
    c.box(396, 34, 470, 84, (60, 62, 66), r=8)
    for k in range(12):
        c.box(399 + k * 6, 38, 402 + k * 6, 80, (120, 122, 128))
    c.box(510, 50, 570, 90, (52, 54, 58), r=10)
    c.box(90, 60, 160, 100, (52, 54, 58), r=8)
    c.poly([(220, 80), (250, 16), (380, 16), (410, 80)], ramp(20, 20, (150, 154, 160), (96, 100, 108)))
    c.box(12, 78, 628, 440, (40, 42, 46), r=44)
    c.box(12, 78, 628, 180, ramp(20, 20, (186, 190, 196), (130, 134, 142)), r=36)
    leather = ramp(60, 60, (86, 50, 32), (60, 34, 22))
    rough = noise(280, 600, cell=10, rng=rng)[..., None]
    body = np.repeat(np.repeat(leather, 5, 0), 10, 1)[:280, :600] * (0.55 + 0.9 * rough)
    c.box(18, 140, 622, 408, body.astype(np.float32), r=10)
    for k, r in enumerate((158, 148, 128, 118, 96, 84)):
        c.oval(316, 276, r, r, (30, 32, 36) if k % 2 == 0 else (96, 100, 108))
    for k in range(40):
        a = k * np.pi / 20
        c.line([(316 + r * np.cos(a), 276 + r * np.sin(a)) for r in (131, 145)], (150, 154, 162), w=3)
    glass = landscape(160, 160, seed=7, sky=((90, 60, 160), (20, 30, 70)), land=((20, 60, 60), (10, 16, 30)))
    c.oval(316, 276, 80, 80, glass)
    c.oval(286, 246, 18, 12, (250, 250, 255), o=0.8)
    c.oval(346, 310, 8, 6, (200, 220, 255), o=0.6)
    c.box(270, 34, 360, 62, (24, 26, 30), r=6)
    c.oval(540, 118, 14, 14, (200, 60, 50))
    c.box(60, 104, 130, 128, (230, 220, 190), r=5)
    c.box(556, 200, 600, 330, (36, 22, 16), r=14)
    return c.picture()


def bus() -> Floats:
    """A city bus from the side in green and cream, with riders behind the windows."""
    c = Canvas(980, 400)
    rng = np.random.default_rng(71)
    c.box(8, 22, 972, 352, (24, 60, 50), r=34)
    c.box(12, 26, 968, 346, ramp(30, 30, (238, 232, 206), (214, 206, 176)), r=30)
    c.poly([(12, 236), (360, 236), (520, 346), (12, 346)], (36, 150, 96))
    c.poly([(400, 236), (968, 236), (968, 320), (540, 330)], (36, 150, 96))
    c.poly([(360, 236), (400, 236), (560, 346), (520, 346)], (244, 180, 50))
    c.box(60, 8, 420, 28, (120, 128, 136), r=8)
    for k in range(11):
        c.box(70 + k * 32, 11, 94 + k * 32, 25, (70, 76, 84), r=2)
    for k in range(7):
        x = 40 + k * 118
        if k in (2, 5):
            for half in (0, 1):
                c.box(x + half * 52, 70, x + 48 + half * 52, 330, (40, 46, 54), r=6)
                c.box(x + 5 + half * 52, 78, x + 43 + half * 52, 318, ramp(20, 20, (150, 186, 206), (70, 96, 120)), r=4)
            continue
        view = landscape(90, 100, seed=70 + k, sky=((150, 190, 220), (110, 150, 180)), land=((70, 90, 100),))
        c.box(x, 66, x + 108, 208, (34, 38, 46), r=12)
        c.box(x + 5, 71, x + 103, 203, view, r=9)
        for _ in range(int(rng.integers(1, 4))):
            px = x + int(rng.integers(24, 84))
            c.oval(px, 150, 15, 18, (48, 38, 40))
            c.box(px - 22, 166, px + 22, 203, BRIGHT[int(rng.integers(9))], r=10)
    c.box(868, 60, 962, 214, (34, 38, 46), r=16)
    c.box(874, 66, 958, 208, ramp(20, 20, (190, 214, 228), (80, 104, 124), angle=30), r=12)
    c.box(650, 34, 850, 58, (20, 22, 24), r=5)
    for k in range(26):
        if rng.random() < 0.75:
            c.box(656 + k * 7, 38 + 4 * int(rng.integers(3)), 660 + k * 7, 54, (250, 170, 40))
    for x in (190, 770):
        c.oval(x, 334, 62, 62, (26, 28, 30))
        c.oval(x, 334, 52, 52, (40, 42, 46))
        c.oval(x, 334, 30, 30, (176, 180, 186))
        for k in range(6):
            a = k * np.pi / 3
            c.oval(x + 19 * np.cos(a), 334 + 19 * np.sin(a), 5, 5, (60, 62, 66))
    c.box(936, 262, 966, 286, (255, 246, 200), r=6)
    c.box(14, 256, 34, 290, (210, 40, 40), r=5)
    c.line([(14, 226), (866, 226)], (120, 110, 80), w=3)
    return c.picture()


def speaker() -> Floats:
    """A cylinder-shaped speaker in woven cloth with a zigzag pattern and a lit ring."""
    c = Canvas(340, 480)
    rng = np.random.default_rng(81)
    c.box(6, 40, 334, 470, (40, 42, 60), r=60)
    cloth = ramp(430, 328, (84, 92, 140), (52, 58, 96))
    y, x = np.mgrid[0:430, 0:328]
    zigzag = (y + np.abs((x % 82) - 41)) % 72
    cloth[zigzag < 14] = (236, 178, 84)
    cloth[(zigzag > 30) & (zigzag < 38)] = (208, 84, 96)
    weave = 1 + 0.16 * np.sin(x * 1.6) * np.sin(y * 1.6)
    round_ = 0.55 + 0.55 * np.sin(np.clip((x + 20) / 360, 0, 1) * np.pi)
    cloth = cloth * (weave * round_)[..., None] * (0.9 + 0.2 * noise(430, 328, cell=40, rng=rng)[..., None])
    c.box(8, 42, 332, 466, cloth.astype(np.float32), r=58)
    c.oval(170, 58, 162, 50, (48, 52, 66))
    c.oval(170, 54, 154, 44, ramp(20, 20, (196, 200, 210), (140, 144, 156), angle=10))
    c.ring(170, 54, 110, 31, (90, 220, 240), line=7)
    for x0, shape in ((110, 0), (170, 1), (230, 2)):
        if shape == 1:
            c.poly([(x0 - 9, 44), (x0 + 13, 54), (x0 - 9, 64)], (40, 44, 56))
        else:
            c.box(x0 - 12, 51, x0 + 12, 57, (40, 44, 56))
            if shape == 2:
                c.box(x0 - 3, 44, x0 + 3, 64, (40, 44, 56))
    c.box(120, 380, 220, 420, (30, 32, 44), r=10)
    for k in range(8):
        c.box(128 + k * 11, 410 - int(rng.integers(6, 26)), 135 + k * 11, 412, BRIGHT[(k * 2) % 9])
    return c.picture()

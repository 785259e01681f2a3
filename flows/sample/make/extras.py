"""The other pictures of the week: photographs with nobody named in them, and files with something wrong."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as PilImage
from PIL import ImageDraw

from engine.core.geometry import Floats
from flows.sample.make.backgrounds import PLACES
from flows.sample.make.canvas import ramp
from flows.sample.make.compose import Placed, develop, picture, warp
from flows.sample.make.cutouts import photo

#: File -> photograph, part shown (x1, y1, x2, y2; zeros are the whole), width in pixels, mirrored, tint.
PLAIN: dict[str, tuple[str, tuple[int, int, int, int], int, bool, tuple[float, float, float]]] = {
    "newsroom-cat.jpg": ("chelsea.png", (0, 0, 0, 0), 720, False, (1.0, 1.0, 1.0)),
    "cat-sofa.jpg": ("chelsea.png", (60, 10, 400, 290), 800, True, (0.9, 0.95, 1.0)),
    "deep-field.jpg": ("hubble_deep_field.jpg", (0, 60, 1000, 720), 900, False, (1.0, 1.0, 1.0)),
    "sky-patch.jpg": ("hubble_deep_field.jpg", (420, 300, 960, 840), 640, True, (1.1, 1.0, 0.9)),
    "brick-wall.jpg": ("brick.png", (0, 60, 512, 420), 800, False, (1.1, 0.82, 0.74)),
    "gravel-road.jpg": ("gravel.png", (0, 0, 512, 380), 800, False, (1.0, 0.98, 0.94)),
    "pitch-grass.jpg": ("grass.png", (0, 100, 512, 460), 800, False, (0.75, 1.05, 0.5)),
    "photographer.jpg": ("camera.png", (0, 0, 0, 0), 700, False, (1.0, 1.0, 1.0)),
    "market-cup.jpg": ("coffee.png", (120, 0, 600, 400), 780, True, (1.0, 1.0, 1.05)),
    "reader-cup.jpg": ("coffee.png", (0, 0, 520, 330), 700, False, (0.86, 0.88, 0.92)),
    "uncaptioned.jpg": ("clock_motion.png", (0, 0, 0, 0), 640, False, (1.0, 0.98, 0.92)),
    "small-cup.jpg": ("coffee.png", (150, 0, 450, 300), 120, False, (1.0, 1.0, 1.0)),
    "banner.jpg": ("rocket.jpg", (0, 0, 640, 80), 1200, False, (1.0, 1.0, 1.0)),
}


def _plain(name: str) -> Floats:
    file, (x1, y1, x2, y2), width, mirrored, tint = PLAIN[name]
    part = photo(file)[y1 : y2 or None, x1 : x2 or None].astype(np.float32)
    if mirrored:
        part = np.ascontiguousarray(part[:, ::-1])
    share = width / part.shape[1]
    method = cv2.INTER_AREA if share < 1 else cv2.INTER_CUBIC
    grown = cv2.resize(part, (width, max(1, round(part.shape[0] * share))), interpolation=method)
    return np.asarray(np.clip(grown * np.array(tint), 0, 255), np.float32)


def _jpeg(pixels: Floats, quality: int = 84) -> bytes:
    out = io.BytesIO()
    PilImage.fromarray(np.rint(pixels).astype(np.uint8)).save(out, "JPEG", quality=quality)
    return out.getvalue()


def _logo() -> bytes:
    sheet = PilImage.new("RGB", (800, 420), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    draw.ellipse((60, 110, 260, 310), fill=(30, 60, 170))
    draw.rectangle((150, 110, 170, 310), fill=(255, 255, 255))
    for k, wide in enumerate((400, 330, 260)):
        draw.rectangle((310, 130 + 62 * k, 310 + wide, 166 + 62 * k), fill=(30, 60, 170))
    out = io.BytesIO()
    sheet.save(out, "PNG", optimize=False)
    return out.getvalue()


def _lamp() -> bytes:
    frames = []
    for light in (90, 255):
        frame = PilImage.new("RGB", (320, 320), (30, 30, 40))
        ImageDraw.Draw(frame).ellipse((80, 60, 240, 220), fill=(light, light, light // 2))
        frames.append(frame)
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=400, loop=0)
    return out.getvalue()


def _two_cups() -> bytes:
    """The cup twice, once turned to blue, side by side; nobody has reference pictures of either."""
    cup = picture("cup")
    blue = np.dstack([cup[..., [2, 1, 0]] * np.array((0.9, 1.0, 1.05)), cup[..., 3]]).astype(np.float32)
    scene = PLACES["table"](900, 600, 119)
    for source, placed in (
        (cup, Placed("cup", 240, 520, 340, gain=0.96)),
        (blue, Placed("cup", 660, 500, 330, mirror=True)),
    ):
        layer = warp(source, placed, width=900, height=600)
        alpha = np.clip(layer[..., 3:], 0, 1)
        scene = scene * (1 - 0.4 * cv2.GaussianBlur(alpha[..., 0], (0, 0), 9)[..., None]) * (1 - alpha) + layer[..., :3]
    return develop(np.asarray(scene, np.float32), seed=119)[0]


def write_extras(folder: Path) -> None:
    """Write them all; `line-9.jpg` must be there already."""
    for name in PLAIN:
        (folder / name).write_bytes(_jpeg(_plain(name)))
    with PilImage.open(folder / "line-9.jpg") as bus:
        small = np.asarray(bus.convert("RGB").resize((720, 480), PilImage.Resampling.LANCZOS), np.float32)
    (folder / "line-9-small.jpg").write_bytes(_jpeg(small, quality=70))
    turf = cv2.resize(_plain("pitch-grass.jpg"), (640, 450), interpolation=cv2.INTER_AREA)
    (folder / "pitch-grass-again.jpg").write_bytes(_jpeg(np.asarray(turf, np.float32), quality=68))
    (folder / "two-cups.jpg").write_bytes(_two_cups())
    whole = _jpeg(_plain("photographer.jpg")[:, ::-1])
    (folder / "truncated.jpg").write_bytes(whole[: len(whole) * 3 // 5])
    (folder / "flat.jpg").write_bytes(_jpeg(ramp(400, 640, (206, 206, 208), (208, 208, 209))))
    (folder / "courier-type.png").write_bytes(_logo())
    (folder / "animated.gif").write_bytes(_lamp())
    page = (
        b"<!doctype html><html><head><title>Not here</title></head><body><p>The picture has moved.</p></body></html>\n"
    )
    (folder / "not-a-picture.jpg").write_bytes(page)

"""A story as one HTML file with its pictures, masks and boxes inside. No script, no network."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

from flows.story.gather import Story
from flows.story.words import Part, Picture, parts

if TYPE_CHECKING:
    from engine.core.store import BlobStore

#: Longer side of a picture in the page.
SIDE_PX = 900
STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5a646e; --line: #d6dbe0; --ground: #fff; --panel: #f5f7f9;
  --bad: #b3261e; --accent: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --soft: #a3adb7; --line: #3a434c; --ground: #15191d;
  --panel: #1e242a; --bad: #ff8a80; --accent: #7db8f5; } }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 0 0 .4rem; }
section { border-left: 3px solid var(--line); padding: .1rem 0 .1rem 1rem; margin: 1.4rem 0; }
section.lost { border-color: var(--bad); } section.lost h2 { color: var(--bad); }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .1rem .8rem; margin: 0; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.shots { display: flex; flex-wrap: wrap; gap: 1rem; margin: .8rem 0; } figure { margin: 0; max-width: 100%; }
.shot { position: relative; width: fit-content; max-width: 100%; }
.shot img { display: block; max-width: 100%; height: auto; }
.shot .over { position: absolute; inset: 0; width: 100%; height: 100%; }
svg rect { fill: none; stroke: #fff; stroke-width: 2; stroke-dasharray: 5 4; vector-effect: non-scaling-stroke; }
svg rect.chosen { stroke: #ff6000; stroke-width: 3; stroke-dasharray: none; }
figcaption { color: var(--soft); font-size: .85rem; max-width: 40rem; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--accent); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .7rem; border-radius: 6px;
  font-size: .85rem; }
"""


def page(story: Story, *, blobs: BlobStore) -> str:
    """The page as HTML; pictures that are gone are said to be gone."""
    title = f"The story of {story.item}"
    body = "\n".join(_part(part, blobs) for part in parts(story))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{body}\n"
        "</body></html>\n"
    )


def _part(part: Part, blobs: BlobStore) -> str:
    lines = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in part.lines)
    shots = "".join(_shot(picture, blobs) for picture in part.pictures)
    folded = "".join(
        f"<details><summary>{escape(label)}</summary><pre>{escape(value)}</pre></details>"
        for label, value in part.folded
    )
    kind = ' class="lost"' if part.lost else ""
    shown = f'<div class="shots">{shots}</div>' if shots else ""
    return f"<section{kind}><h2>{escape(part.title)}</h2><dl>{lines}</dl>{shown}{folded}</section>"


def _shot(picture: Picture, blobs: BlobStore) -> str:
    from engine.core.errors import TerminalError
    from engine.core.images import ImageError, encode_jpeg, open_image

    caption = f"<figcaption>{escape(picture.caption)}</figcaption>"
    try:
        pixels = open_image(blobs.get(picture.sha256, picture.ext)).pixels
    except (TerminalError, ImageError):
        return f"<figure><p>The picture {escape(picture.sha256[:12])} is gone.</p>{caption}</figure>"
    from PIL import Image as PilImage

    shown = PilImage.fromarray(pixels)
    shown.thumbnail((SIDE_PX, SIDE_PX))
    import numpy as np

    small = encode_jpeg(np.asarray(shown), quality=80)
    over = _over(picture, shown.size) if picture.annotation is not None else ""
    source, (width, height) = _data(small, "image/jpeg"), shown.size
    return (
        f'<figure><div class="shot"><img src="{source}" width="{width}" height="{height}"'
        f' alt="{escape(picture.caption)}">{over}</div>{caption}</figure>'
    )


def _over(picture: Picture, size: tuple[int, int]) -> str:
    """Mask and boxes over the picture."""
    from PIL import Image as PilImage

    from engine.core.schema import Rle
    from flows.review.rows import overlay_png

    assert picture.annotation is not None
    rle = picture.annotation["rle"]
    mask = PilImage.open(io.BytesIO(overlay_png(Rle(size=tuple(rle["size"]), counts=rle["counts"]))))
    out = io.BytesIO()
    mask.resize(size).save(out, "PNG")
    chosen = picture.annotation["binding"]["candidate"]
    boxes = "".join(
        f'<rect x="{box["x1"]:.1f}" y="{box["y1"]:.1f}" width="{box["x2"] - box["x1"]:.1f}" '
        f'height="{box["y2"] - box["y1"]:.1f}"{" class=chosen" if number == chosen else ""}/>'
        for number, box in enumerate(picture.annotation["candidates"])
    )
    return (
        f'<img class="over" src="{_data(out.getvalue(), "image/png")}" alt="mask">'
        f'<svg class="over" viewBox="0 0 {picture.width} {picture.height}" preserveAspectRatio="none">{boxes}</svg>'
    )


def _data(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"

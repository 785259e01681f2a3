"""The bytes of pictures and masks as they are published.

A photo keeps its own JPEG pixels where it is upright RGB, without metadata; everything else (turned, CMYK, grey,
PNG, WebP ...) is encoded once, at the configured quality, 4:4:4. A row above the byte limit is made smaller by a
fixed rule, picture and mask together: first the quality ladder `QUALITIES`, then ever smaller scales, each `STEP`
times the one before. The steps are our choice; they depend on nothing but the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image as PilImage

from engine.core.geometry import Image, Mask
from engine.core.images import encode_jpeg, open_image
from engine.core.masks import encode_png
from engine.snapshot.jpeg import JpegError, without_metadata

#: JPEG qualities tried in turn for a row that is too large, as far as they are below the configured one.
QUALITIES = (85, 75)
#: Each further try has sides of this share of the one before.
STEP = 0.8
#: No side is made shorter than this, in pixels.
LEAST_SIDE_PX = 64


@dataclass(frozen=True, slots=True)
class Picture:
    """A published picture with its mask: JPEG bytes, PNG bytes, size in pixels, and the scale it was given."""

    jpeg: bytes
    png: bytes
    width: int
    height: int
    mask: Mask
    scale: float = 1.0

    @property
    def size_bytes(self) -> int:
        return len(self.jpeg) + len(self.png)


def publish(data: bytes, mask: Mask, *, quality: int) -> Picture:
    """The picture and mask to publish. Raises `engine.core.images.ImageError`, and ValueError for a mask of
    another size than the upright image."""
    opened = open_image(data)
    height, width = opened.pixels.shape[:2]
    if mask.shape != (height, width):
        raise ValueError(f"the mask is {mask.shape[1]}x{mask.shape[0]}, its image {width}x{height}")
    jpeg = None
    if opened.upright_rgb:
        try:
            jpeg = without_metadata(data)
        except JpegError:
            # Pillow reads it, a stricter reader may not: its pixels are encoded anew
            jpeg = None
    if jpeg is None:
        jpeg = encode_jpeg(opened.pixels, quality=quality)
    return Picture(jpeg, encode_png(mask), width, height, mask)


def shrink(
    pictures: Sequence[Picture], sources: Sequence[bytes], *, quality: int, limit_bytes: int
) -> tuple[tuple[Picture, ...], str]:
    """Pictures of one row within the limit, and the step that was taken ("" for none, "quality 85", "scale 0.640").

    `sources` are the fetched bytes of the pictures. Raises ValueError if even the last step is too large.
    """
    if sum(picture.size_bytes for picture in pictures) <= limit_bytes:
        return tuple(pictures), ""
    pixels = [open_image(data).pixels for data in sources]
    last = quality
    for step in (value for value in QUALITIES if value < quality):
        last = step
        found = tuple(
            Picture(encode_jpeg(image, quality=step), old.png, old.width, old.height, old.mask)
            for image, old in zip(pixels, pictures, strict=True)
        )
        if sum(picture.size_bytes for picture in found) <= limit_bytes:
            return found, f"quality {step}"
    scale = STEP
    while min(min(image.shape[:2]) for image in pixels) * scale >= LEAST_SIDE_PX:
        found = tuple(
            _scaled(image, old.mask, scale=scale, quality=last) for image, old in zip(pixels, pictures, strict=True)
        )
        if sum(picture.size_bytes for picture in found) <= limit_bytes:
            return found, f"scale {scale:.3f}"
        scale *= STEP
    raise ValueError(f"larger than {limit_bytes} bytes at every quality and scale")


def again(data: bytes, mask: Mask, *, step: str, quality: int) -> Picture:
    """The published picture once more, from the fetched bytes, the final mask and the step that `shrink` took."""
    if not step:
        return publish(data, mask, quality=quality)
    pixels = open_image(data).pixels
    if step.startswith("quality "):
        jpeg = encode_jpeg(pixels, quality=int(step.split()[1]))
    else:
        lowest = min((value for value in QUALITIES if value < quality), default=quality)
        size = mask.shape[1], mask.shape[0]
        small = PilImage.fromarray(pixels).resize(size, PilImage.Resampling.LANCZOS)
        jpeg = encode_jpeg(np.asarray(small), quality=lowest)
    return Picture(jpeg, encode_png(mask), mask.shape[1], mask.shape[0], mask)


def _scaled(image: Image, mask: Mask, *, scale: float, quality: int) -> Picture:
    height, width = mask.shape
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = PilImage.fromarray(image).resize(size, PilImage.Resampling.LANCZOS)
    # a mask is never smoothed: nearest neighbour keeps it binary
    small_mask = np.asarray(PilImage.fromarray(mask).resize(size, PilImage.Resampling.NEAREST), dtype=bool)
    jpeg = encode_jpeg(np.asarray(small), quality=quality)
    return Picture(jpeg, encode_png(small_mask), size[0], size[1], small_mask, scale)

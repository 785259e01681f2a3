"""Reading a mask that someone hands in as a picture file, in whatever mode it was saved.

What is published is always 8-bit grey with 0 and 255; what people's tools write is not. A file whose meaning is not
plain is refused and never guessed: a mask that is inverted or taken from a palette's colours scores zero silently.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image as PilImage
from PIL import UnidentifiedImageError

from engine.core.geometry import Mask

#: The grey value from which a pixel counts as object where the file is not binary.
HALF = 128


class MaskError(ValueError):
    """The file is not a mask whose meaning is plain; the text says why."""


@dataclass(frozen=True, slots=True)
class ReadMask:
    """The mask, pixels that are neither object nor background (`ignored`, of the same shape), and remarks."""

    mask: Mask
    ignored: Mask
    remarks: tuple[str, ...] = ()


def read_mask(data: bytes) -> ReadMask:
    """A mask from the bytes of a picture file. Raises `MaskError`.

    1-bit, grey with 0 and one other value (with a remark unless that is 1 or the highest), 16-bit, colour with equal
    channels: object where not zero. Grey with 0, 1 and 255: 255 means "ignore". With an alpha channel and one colour,
    the alpha is the mask. A palette picture is read by its indices, and only if index 0 is the darker entry; otherwise
    it is refused. Other grey pictures are not binary: they are cut at `HALF`, with a remark.
    """
    try:
        picture: PilImage.Image = PilImage.open(io.BytesIO(data))
        picture.load()
    except UnidentifiedImageError as error:
        raise MaskError("not a picture in a known format") from error
    except Exception as error:
        raise MaskError(f"not a whole picture: {error}") from error
    if picture.mode == "P":
        return _plain(_indices(picture))
    if picture.mode in ("RGBA", "LA"):
        pixels = np.asarray(picture)
        if len(np.unique(pixels[..., :-1].reshape(-1, pixels.shape[-1] - 1), axis=0)) == 1:
            return _grey(pixels[..., -1], "alpha channel")
        picture = picture.convert("RGB")
    if picture.mode in ("RGB", "CMYK", "YCbCr"):
        pixels = np.asarray(picture.convert("RGB"))
        if not (pixels == pixels[..., :1]).all():
            raise MaskError("a picture in colours is not a mask")
        return _grey(pixels[..., 0], "colour channels")
    if picture.mode == "1":
        return _plain(np.asarray(picture, dtype=bool))
    if picture.mode.startswith("I") or picture.mode == "F":
        return _grey(np.asarray(picture, dtype=np.float64), "16-bit")
    return _grey(np.asarray(picture.convert("L")), "grey")


def _plain(mask: Mask) -> ReadMask:
    return ReadMask(mask, np.zeros_like(mask))


def _grey(values: np.ndarray[Any, np.dtype[Any]], what: str) -> ReadMask:
    found = np.unique(values)
    if found.size <= 2 and found[0] == 0:
        if found[-1] in (0, 1, 255, 65535):
            return _plain(values > 0)
        told = f"the mask was not binary (the value {found[-1]:g} beside 0 in its {what}): what is not 0 was taken"
        return ReadMask(values > 0, np.zeros(values.shape, dtype=bool), (told,))
    if found.size == 3 and found.tolist() == [0, 1, 255]:
        return ReadMask(values == 1, values == 255, ("value 255 beside 0 and 1 was read as 'ignore'",))
    if found.tolist() == [255]:
        return _plain(np.ones(values.shape, dtype=bool))
    if found.size == 1:
        raise MaskError(f"every pixel has the value {found[0]}: nothing says what is object")
    top = 255.0 if found[-1] <= 255 else 65535.0
    if found.size <= 2:
        raise MaskError(f"it has the values {found.tolist()} and no zero: nothing says which is background")
    return ReadMask(
        values >= HALF / 255.0 * top,
        np.zeros(values.shape, dtype=bool),
        (f"the mask was not binary ({found.size} values in its {what}): cut at half",),
    )


def _indices(picture: PilImage.Image) -> Mask:
    indices = np.asarray(picture)
    used = np.unique(indices)
    if used.size > 2 or used[0] != 0:
        raise MaskError(f"a palette picture with the indices {used.tolist()[:6]} is not a binary mask")
    palette = np.asarray(picture.getpalette("RGB") or [], dtype=int).reshape(-1, 3)
    lightness = palette.sum(axis=1)
    if used.size == 2 and lightness.size > used[1] and lightness[0] > lightness[used[1]]:
        raise MaskError("a palette picture whose index 0 is the lighter colour: not a binary mask in our format")
    return indices > 0

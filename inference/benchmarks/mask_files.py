"""Reading a true mask from an image file: the encodings people really use, and a refusal of the others.

A mask in our format is 8-bit grey with 0 and 255 or 1-bit. Also read: 0/1 grey, 0/1/255 grey (255 is then to
be ignored), RGB with equal channels, 16-bit grey, RGBA whose alpha is the mask, and a palette whose index is
the label (black background first). Values between are thresholded at 128 and reported as not binary. Anything
else is an error: a mask is never guessed.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as PilImage
from PIL import UnidentifiedImageError

from inference.benchmarks.base import TruthMask
from inference.spans import spans_of_grey

PNG_START = b"\x89PNG\r\n\x1a\n"
GREY = 0
THRESHOLD = 128
Pixels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ReadMask:
    """A decoded mask and what was odd about its file ("" if nothing)."""

    truth: TruthMask
    warning: str = ""


def read_mask(data: bytes) -> ReadMask:
    """Decode a mask file. Raises ValueError with the reason for bytes that are not a mask in a known encoding."""
    grey = _fast_grey(data)
    if grey is None:
        grey = _any_mode(data)
    return _from_grey(grey)


def mask_size(data: bytes) -> tuple[int, int]:
    """Height and width of the upright image, from the header of its file."""
    try:
        opened = PilImage.open(io.BytesIO(data))
    except UnidentifiedImageError as error:
        raise ValueError("not a picture in a known format") from error
    except PilImage.DecompressionBombError as error:
        raise ValueError("its header tells more pixels than any picture has") from error
    with opened as picture:
        turned = picture.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        return (picture.width, picture.height) if turned else (picture.height, picture.width)


def _fast_grey(data: bytes) -> Pixels | None:
    """Pixels of a plain 8-bit or 1-bit grey PNG, by OpenCV, which is faster than Pillow and needs no lock."""
    if len(data) < 33 or not data.startswith(PNG_START):
        return None
    depth, colour = struct.unpack(">BB", data[24:26])
    if colour != GREY or depth not in (1, 8):
        return None
    import cv2

    pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.ndim != 2 or pixels.dtype != np.uint8:
        return None
    grey: Pixels = pixels
    return grey


def _any_mode(data: bytes) -> Pixels:
    try:
        with PilImage.open(io.BytesIO(data)) as opened:
            opened.load()
            picture = opened.copy()
    except Exception as error:
        told = "its format is not known" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"no image can be decoded from {data[:12]!r}: {told}") from error
    mode = picture.mode
    if mode in ("L", "1"):
        return np.asarray(picture.convert("L"))
    if mode == "P":
        return _palette(picture)
    if mode.startswith("I"):
        deep = np.asarray(picture).astype(np.int64)
        top = int(deep.max(initial=0))
        if not np.isin(deep, (0, top)).all():
            raise ValueError(f"a {mode} image with more than two values is not a binary mask")
        return np.where(deep > 0, 255, 0).astype(np.uint8)
    if mode in ("RGBA", "LA"):
        bands = np.asarray(picture)
        alpha, colours = bands[..., -1], bands[..., :-1]
        if (alpha == 255).all():
            return _equal_channels(colours, mode)
        if (colours == colours.reshape(-1, colours.shape[-1])[0]).all():
            return np.ascontiguousarray(alpha)
        raise ValueError(f"an {mode} image whose colour and alpha both vary is not a binary mask")
    if mode == "RGB":
        return _equal_channels(np.asarray(picture), mode)
    raise ValueError(f"an image of mode {mode} is not a binary mask in a known encoding")


def _equal_channels(bands: Pixels, mode: str) -> Pixels:
    if not (bands == bands[..., :1]).all():
        raise ValueError(f"a coloured {mode} image is not a binary mask")
    return np.ascontiguousarray(bands[..., 0])


def _palette(picture: PilImage.Image) -> Pixels:
    """Indices of a palette mask: 0 must be the black background, else nobody can say which index is the object."""
    indices = np.asarray(picture)
    used = np.unique(indices)
    palette = picture.getpalette() or []
    if not np.isin(used, (0, 1, 255)).all() or any(palette[:3]):
        raise ValueError(
            "a palette image is read as a mask only if index 0 is black background and 1 the object "
            f"(255 to be ignored); this one uses {used[:5].tolist()} and index 0 has the colour {palette[:3]}"
        )
    return indices


def _from_grey(grey: Pixels) -> ReadMask:
    spans = spans_of_grey(np.ascontiguousarray(grey))
    if spans is not None:
        return ReadMask(TruthMask(grey, spans=spans))
    ones = grey == 1
    ignored = grey == 255
    if np.count_nonzero(ones) + np.count_nonzero(ignored) == np.count_nonzero(grey):
        return ReadMask(TruthMask(ones, ignored if ignored.any() else None))
    soft = grey >= THRESHOLD
    return ReadMask(TruthMask(soft), "the mask was not binary, pixels of at least 128 were taken")

"""From fetched bytes to an `ImageRef`: opened, measured, judged, hashed. And which photos are one photo.

Opening is `engine.core.images`' business; fetching is `collect`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from engine.core.geometry import Image
from engine.core.images import ImageError, Opened, open_image
from engine.core.protocols import Blobs
from engine.core.schema import Code, ImageClaim, ImageRef
from engine.core.store import sha256_bytes

#: Wider or higher than this is a banner, not a photo; cinema formats and panoramas lie below 3.
MAX_ASPECT = 4.0
#: A picture whose grey levels spread less (standard deviation, of 255) is one colour with noise.
MIN_SPREAD = 4.0
#: A drawn sign has a handful of colours; a photo, and a rendered thing with shading, has far more.
LOGO_COLOURS = 6
LOGO_SHARE = 0.995
_ARCHIVE = re.compile(
    r"(?i)\b(file (photo|picture|image|pic)|stock (photo|image|picture)|library (image|picture|photo)|archive "
    r"(photo|image|picture)|archivbild|archivfoto|symbolbild|photo d.archives?|foto de archivo|representational image|"
    r"illustrati(ve|on) (photo|image|picture))\b"
)


def take_photo(data: bytes, claim: ImageClaim, *, min_side_px: int, blobs: Blobs) -> ImageRef:
    """Read and store a picture. Raises `ImageError` with the code that says why it is refused."""
    found = read_photo(data, claim, min_side_px=min_side_px)
    blobs.put(data, found.ext)
    return found


def read_photo(data: bytes, claim: ImageClaim, *, min_side_px: int) -> ImageRef:
    """Open, judge and hash a picture, which is stored by the caller. Raises `ImageError`."""
    opened = open_image(data)
    judge(opened, min_side_px=min_side_px)
    height, width = opened.pixels.shape[:2]
    return ImageRef(
        sha256=sha256_bytes(data),
        ext=opened.ext,
        url=claim.url,
        width=width,
        height=height,
        caption=claim.caption,
        credit=claim.credit,
        rights=claim.rights,
        alt=claim.alt,
        role=claim.role,
        phash=perceptual_hash(opened.pixels),
        archive_material=bool(_ARCHIVE.search(f"{claim.caption} {claim.credit}")),
    )


def judge(opened: Opened, *, min_side_px: int) -> None:
    """Raises `ImageError` for pictures too small, too narrow, of one colour, or drawn signs."""
    height, width = opened.pixels.shape[:2]
    if min(width, height) < min_side_px and not (max(width, height) > MAX_ASPECT * min(width, height)):
        raise ImageError(Code.IMAGE_TOO_SMALL, f"{width}x{height} pixels, the least side is {min_side_px}")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(Code.IMAGE_BANNER, f"{width}x{height} pixels: the shape of a banner")
    sample = _sample(opened.pixels)
    if max(_spread(sample[..., channel]) for channel in range(sample.shape[2])) < MIN_SPREAD:
        raise ImageError(Code.IMAGE_FLAT, "one colour")
    if _is_sign(sample):
        raise ImageError(Code.IMAGE_LOGO, f"at most {LOGO_COLOURS} colours: a drawn sign")


def _sample(pixels: Image) -> Image:
    step = max(1, min(pixels.shape[0], pixels.shape[1]) // 256)
    return pixels[::step, ::step]


def _spread(levels: Image) -> float:
    """Standard deviation of one channel, from the counts of its 256 levels: far quicker than from the pixels."""
    counts = np.bincount(levels.ravel(), minlength=256)
    values = np.arange(256)
    mean = float(counts @ values) / levels.size
    return float(np.sqrt((counts @ (values - mean) ** 2) / levels.size))


def _is_sign(sample: Image) -> bool:
    coarse = (sample >> 4).astype(np.int64)
    codes = (coarse[..., 0] << 8) | (coarse[..., 1] << 4) | coarse[..., 2]
    counts = np.sort(np.bincount(codes.ravel(), minlength=4096))[::-1]
    return float(counts[:LOGO_COLOURS].sum()) >= LOGO_SHARE * codes.size


def perceptual_hash(pixels: Image) -> str:
    """64-bit DCT hash of an upright RGB image as 16 hex digits (imagehash's phash)."""
    import imagehash
    from PIL import Image as PilImage

    return str(imagehash.phash(PilImage.fromarray(pixels)))


def distance(a: str, b: str) -> int:
    """Differing bits of two perceptual hashes."""
    return (int(a, 16) ^ int(b, 16)).bit_count()


def near(phash: str, others: Sequence[str], *, bits: int) -> str | None:
    """The first of `others` that differs in at most `bits` bits, or None."""
    value = int(phash, 16)
    return next((other for other in others if (value ^ int(other, 16)).bit_count() <= bits), None)

"""The one place that opens images: bytes in, upright RGB out, or a reason why not.

Bytes decide what a file is, never a header or a suffix. Orientation is applied once, colour is converted to
sRGB with the embedded profile, transparency is laid on white, 16-bit grey is scaled, CMYK is converted once.
Limits are checked from the header before pixels are decoded. Fetching and choosing images live elsewhere.
"""

from __future__ import annotations

import io
import threading
import warnings
from dataclasses import dataclass

import numpy as np
from PIL import Image as PilImage
from PIL import ImageCms, ImageFile, ImageOps

from engine.core.geometry import Image
from engine.core.schema import Code

#: Formats that are read, and the suffix of their blobs.
FORMATS = {
    "JPEG": "jpg",
    "PNG": "png",
    "WEBP": "webp",
    "GIF": "gif",
    "AVIF": "avif",
    "TIFF": "tif",
    "MPO": "jpg",
}
MAX_PIXELS = 50_000_000
MAX_SIDE = 20_000
_lock = threading.Lock()


class ImageError(Exception):
    """The bytes are not an image that can be used; `code` says why."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[type[ImageError], tuple[Code, str]]:
        return ImageError, (self.code, self.detail)


@dataclass(frozen=True, slots=True)
class Opened:
    """An image in memory: `pixels` upright RGB uint8 (H, W, 3); `upright` if the file itself needed no turning
    and no conversion, so that its own bytes may be published."""

    pixels: Image
    format: str
    ext: str
    upright_rgb: bool


def open_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Opened:
    """Decode an image. Raises `ImageError` with `IMAGE_NOT_AN_IMAGE`, `IMAGE_TRUNCATED`, `IMAGE_TOO_LARGE`,
    `IMAGE_ANIMATED` or `IMAGE_BROKEN`."""
    if not data:
        raise ImageError(Code.IMAGE_NOT_AN_IMAGE, "no bytes")
    with warnings.catch_warnings():
        # Pillow warns of large headers and odd EXIF; the limits below decide, the user need not see it.
        warnings.simplefilter("ignore")
        try:
            picture = PilImage.open(io.BytesIO(data), formats=tuple(f for f in FORMATS if f != "MPO"))
        except PilImage.DecompressionBombError as error:
            raise ImageError(Code.IMAGE_TOO_LARGE, str(error)) from error
        except Exception as error:
            raise ImageError(Code.IMAGE_NOT_AN_IMAGE, f"no known image format: {data[:16]!r}") from error
        width, height = picture.size
        if width * height > max_pixels or max(width, height) > MAX_SIDE:
            raise ImageError(Code.IMAGE_TOO_LARGE, f"{width}x{height} pixels, the limit is {max_pixels} pixels")
        if picture.format != "MPO" and getattr(picture, "n_frames", 1) > 1 and picture.format != "TIFF":
            raise ImageError(Code.IMAGE_ANIMATED, f"{picture.format} with several frames")
        try:
            with _lock:
                ImageFile.LOAD_TRUNCATED_IMAGES = False
            picture.load()
        except OSError as error:
            truncated = "truncat" in str(error).lower() or "incomplete" in str(error).lower()
            code = Code.IMAGE_TRUNCATED if truncated else Code.IMAGE_BROKEN
            raise ImageError(code, str(error)) from error
        except Exception as error:
            raise ImageError(Code.IMAGE_BROKEN, f"{type(error).__name__}: {error}") from error
        try:
            plain = _is_plain(picture)
            pixels = _to_rgb(picture)
        except Exception as error:
            raise ImageError(Code.IMAGE_BROKEN, f"{type(error).__name__}: {error}") from error
    return Opened(pixels, str(picture.format), FORMATS.get(str(picture.format), "bin"), plain)


def encode_jpeg(pixels: Image, *, quality: int = 92) -> bytes:
    """Upright RGB to baseline JPEG, 4:4:4, no metadata; the same pixels give the same bytes."""
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, "JPEG", quality=quality, subsampling=0, optimize=False)
    return out.getvalue()


def encode_png(pixels: Image) -> bytes:
    """Upright RGB to PNG without metadata."""
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, "PNG", compress_level=6)
    return out.getvalue()


def _orientation(picture: PilImage.Image) -> int:
    value = picture.getexif().get(0x0112, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _is_plain(picture: PilImage.Image) -> bool:
    return (
        picture.format == "JPEG"
        and picture.mode == "RGB"
        and _orientation(picture) == 1
        and _is_srgb(picture.info.get("icc_profile"))
    )


def _is_srgb(profile: bytes | None) -> bool:
    """Whether colours need no conversion; bytes with another profile would look wrong once it is left out."""
    if not profile:
        return True
    try:
        name = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(profile)))
    except (ImageCms.PyCMSError, OSError, ValueError):
        # a profile that cannot be read changes no pixels here either
        return True
    return "srgb" in name.lower()


def _to_rgb(picture: PilImage.Image) -> Image:
    turned = ImageOps.exif_transpose(picture) if _orientation(picture) != 1 else picture
    profile = picture.info.get("icc_profile")
    mode = turned.mode
    if mode in ("I", "I;16", "I;16B", "I;16L", "F"):
        grey = np.asarray(turned, dtype=np.float64)
        top = 65535.0 if mode != "F" else max(1.0, float(grey.max(initial=1.0)))
        turned = PilImage.fromarray((grey / top * 255.0).clip(0, 255).round().astype(np.uint8))
        profile = None
    elif mode in ("LA", "PA", "RGBA", "RGBa", "La") or "transparency" in turned.info:
        rgba = turned.convert("RGBA")
        white = PilImage.new("RGBA", rgba.size, (255, 255, 255, 255))
        turned = PilImage.alpha_composite(white, rgba).convert("RGB")
    elif mode in ("1", "P"):
        turned = turned.convert("RGB")
    if profile and turned.mode in ("RGB", "L", "CMYK", "LAB"):
        converted = _with_profile(turned, profile)
        turned = converted if converted is not None else turned
    if turned.mode == "LAB":
        turned = _lab_to_rgb(turned)
    if turned.mode != "RGB":
        turned = turned.convert("RGB")
    return np.ascontiguousarray(np.asarray(turned, dtype=np.uint8))


def _with_profile(picture: PilImage.Image, profile: bytes) -> PilImage.Image | None:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(picture, source, target, outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None


def _lab_to_rgb(picture: PilImage.Image) -> PilImage.Image:
    lab = ImageCms.createProfile("LAB")
    srgb = ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(lab, srgb, "LAB", "RGB")
    result = ImageCms.applyTransform(picture, transform)
    if result is None:
        raise ValueError("LAB picture could not be converted")
    return result

"""Opening pictures: orientation, colour, transparency, animation, non-images and bombs (cases 20 to 30)."""

from __future__ import annotations

import io
import json
import resource
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as PilImage
from PIL import ImageFile

from engine.core.geometry import Image
from engine.core.images import ImageError, encode_jpeg, encode_png, open_image
from engine.core.schema import Code

CASES = Path(__file__).parents[2] / "data" / "cases"
COLOURS = {"red": (220, 30, 30), "green": (30, 180, 30), "blue": (30, 30, 220), "yellow": (230, 220, 30)}


def files(name: str) -> Path:
    return next(CASES.glob(name))


def code_of(data: bytes) -> Code:
    with pytest.raises(ImageError) as caught:
        open_image(data)
    return caught.value.code


def corners(pixels: Image) -> list[str]:
    """The nearest of four colours in the middle of each quarter, top left first."""
    height, width = pixels.shape[:2]
    found = []
    for y, x in ((height // 4, width // 4), (height // 4, 3 * width // 4)):
        found.append((y, x))
    for y, x in ((3 * height // 4, width // 4), (3 * height // 4, 3 * width // 4)):
        found.append((y, x))
    names = []
    for y, x in found:
        pixel = pixels[y, x].astype(int)
        names.append(min(COLOURS, key=lambda name: int(np.abs(pixel - np.array(COLOURS[name])).sum())))
    return names


ORIENTED = [
    "o1.jpg",
    "o2.jpg",
    "o3.jpg",
    "o4.jpg",
    "o5.jpg",
    "o6.jpg",
    "o7.jpg",
    "o8.jpg",
    "o6.png",
    "o6.webp",
    "o9_invalid.jpg",
]


@pytest.mark.parametrize("name", ORIENTED)
def test_every_orientation_is_turned_once_and_loses_its_tag(name: str) -> None:
    opened = open_image((files("21-*") / name).read_bytes())
    assert opened.pixels.shape == (64, 96, 3)
    assert corners(opened.pixels) == ["red", "green", "blue", "yellow"]
    again = PilImage.open(io.BytesIO(encode_jpeg(opened.pixels)))
    assert again.size == (96, 64)
    assert not again.getexif()
    green = opened.pixels[0:32, 48:96].reshape(-1, 3).astype(int)
    assert green.shape[0] == 1536
    assert (green[:, 1] > green[:, 0] + 60).mean() > 0.95
    # only bytes that need no turning may be published as they are
    assert opened.upright_rgb is (name in ("o1.jpg", "o9_invalid.jpg"))


@pytest.mark.parametrize("name", ["cmyk_adobe.jpg", "lab.tif"])
def test_print_colours_come_out_right_once(name: str) -> None:
    opened = open_image((files("24-*") / name).read_bytes())
    assert opened.pixels.shape == (64, 96, 3)
    assert opened.pixels.dtype == np.uint8
    assert corners(opened.pixels) == ["red", "green", "blue", "yellow"]
    assert not opened.upright_rgb


def test_grey_becomes_three_equal_channels() -> None:
    pixels = open_image((files("24-*") / "gray.jpg").read_bytes()).pixels
    assert pixels.shape == (64, 96, 3)
    assert (pixels[..., 0] == pixels[..., 1]).all()
    assert (pixels[..., 1] == pixels[..., 2]).all()


def test_sixteen_bit_grey_is_scaled() -> None:
    values = np.linspace(0, 65535, 256 * 4, dtype=np.uint16).reshape(4, 256)
    out = io.BytesIO()
    PilImage.fromarray(values).save(out, "PNG")
    pixels = open_image(out.getvalue()).pixels
    assert (int(pixels.min()), int(pixels.max())) == (0, 255)


@pytest.mark.parametrize(("name", "points"), json.loads((files("26-*") / "expected.json").read_text()).items())
def test_transparency_is_laid_on_white(name: str, points: dict[str, list[int]]) -> None:
    pixels = open_image((files("26-*") / name).read_bytes()).pixels
    for place, colour in points.items():
        x, y = (int(part) for part in place.split(","))
        assert np.abs(pixels[y, x].astype(int) - np.array(colour)).max() <= 1


@pytest.mark.parametrize("name", ["anim.gif", "anim.webp", "anim.png", "blank_first.gif"])
def test_animations_of_all_formats_are_refused(name: str) -> None:
    assert code_of((files("27-*") / name).read_bytes()) is Code.IMAGE_ANIMATED


def test_a_gif_with_one_frame_is_a_picture() -> None:
    opened = open_image((files("27-*") / "still.gif").read_bytes())
    assert (opened.format, opened.ext, opened.pixels.shape[2]) == ("GIF", "gif", 3)
    assert corners(opened.pixels) == ["red", "green", "blue", "yellow"]


@pytest.mark.parametrize("name", ["forbidden.jpg", "vector.jpg", "zero.jpg", "json.jpg"])
def test_what_is_no_picture_is_said_to_be_none(name: str) -> None:
    assert code_of((files("29-*") / name).read_bytes()) is Code.IMAGE_NOT_AN_IMAGE


def test_bytes_decide_the_format_and_the_suffix() -> None:
    opened = open_image((files("29-*") / "jpeg_named.png").read_bytes())
    assert (opened.format, opened.ext) == ("JPEG", "jpg")
    opened = open_image((files("29-*") / "modern.avif").read_bytes())
    assert (opened.format, opened.ext) == ("AVIF", "avif")


@pytest.mark.parametrize("path", sorted(files("30-*").glob("claims_*.png")), ids=lambda path: path.stem)
def test_claims_of_huge_size_are_refused_from_the_header(path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    assert code_of(path.read_bytes()) in (Code.IMAGE_TOO_LARGE, Code.IMAGE_BROKEN, Code.IMAGE_NOT_AN_IMAGE)
    assert time.process_time() - start < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_text_bomb_is_no_crash_and_the_next_picture_is_fine() -> None:
    try:
        opened = open_image((files("30-*") / "text_bomb.png").read_bytes())
        assert opened.pixels.shape == (64, 96, 3)
    except ImageError as error:
        assert error.code in (Code.IMAGE_BROKEN, Code.IMAGE_TOO_LARGE, Code.IMAGE_NOT_AN_IMAGE)  # noqa: PT017
    assert open_image((files("21-*") / "o1.jpg").read_bytes()).pixels.shape == (64, 96, 3)


def test_the_pixel_limit_is_ours_and_lies_below_pillows() -> None:
    out = io.BytesIO()
    PilImage.new("L", (400, 300)).save(out, "PNG")
    with pytest.raises(ImageError) as caught:
        open_image(out.getvalue(), max_pixels=100_000)
    assert caught.value.code is Code.IMAGE_TOO_LARGE
    assert PilImage.MAX_IMAGE_PIXELS is not None


@pytest.mark.parametrize("fmt", ["JPEG", "PNG", "WEBP", "GIF", "AVIF", "TIFF"])
def test_cut_files_are_refused_in_every_format(fmt: str) -> None:
    random = np.random.default_rng(7)
    out = io.BytesIO()
    PilImage.fromarray(random.integers(0, 256, (200, 300, 3), dtype=np.uint8)).save(out, fmt)
    data = out.getvalue()
    assert open_image(data).pixels.shape == (200, 300, 3)
    assert code_of(data[: len(data) * 2 // 3]) in (Code.IMAGE_TRUNCATED, Code.IMAGE_BROKEN, Code.IMAGE_NOT_AN_IMAGE)


def test_cut_jpeg_is_called_truncated_whatever_another_library_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    out = io.BytesIO()
    PilImage.fromarray(random.integers(0, 256, (200, 300, 3), dtype=np.uint8)).save(out, "JPEG")
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert code_of(out.getvalue()[:20_000]) is Code.IMAGE_TRUNCATED


def _png(width: int, height: int, chunks: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = b"".join(b"\0" + b"\x80\x40\x20" * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + head + chunks + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_broken_colour_profile_does_not_cost_the_picture() -> None:
    out = io.BytesIO()
    PilImage.new("RGB", (40, 30), (10, 200, 30)).save(out, "JPEG", quality=95, icc_profile=b"no profile" * 20)
    pixels = open_image(out.getvalue()).pixels
    assert np.abs(pixels[15, 20].astype(int) - np.array([10, 200, 30])).max() < 12


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 "]),
)
def test_any_bytes_give_a_picture_or_an_image_error(rest: bytes, magic: bytes) -> None:
    try:
        opened = open_image(magic + rest)
    except ImageError as error:
        assert error.code.value.startswith("image_")  # noqa: PT017
    else:
        assert opened.pixels.ndim == 3


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3000))
def test_a_flipped_bit_gives_a_picture_or_an_image_error(seed: int, place: int) -> None:
    data = bytearray(encode_jpeg(np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)))
    data[place % len(data)] ^= 1 << (seed % 8)
    try:
        assert open_image(bytes(data)).pixels.shape[2] == 3
    except ImageError as error:
        assert error.detail  # noqa: PT017


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_png_gives_the_same_pixels_back(height: int, width: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    assert (open_image(encode_png(pixels)).pixels == pixels).all()
    assert encode_png(pixels) == encode_png(pixels)


def test_a_plain_png_made_by_hand_opens() -> None:
    pixels = open_image(_png(5, 3)).pixels
    assert pixels.shape == (3, 5, 3)
    assert tuple(int(v) for v in pixels[0, 0]) == (0x80, 0x40, 0x20)

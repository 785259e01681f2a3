"""Published pictures: their own pixels where possible, upright, without metadata, and small enough by rule."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as PilImage
from support import snapshots

from engine.core.images import ImageError, open_image
from engine.snapshot.jpeg import JpegError, without_metadata
from engine.snapshot.pictures import QUALITIES, again, publish, shrink

CASES = Path(__file__).parents[2] / "data" / "cases"
COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0)}


def corners(picture: PilImage.Image) -> list[str]:
    rgb = np.asarray(picture.convert("RGB"), dtype=int)
    points = (rgb[6, 6], rgb[6, -7], rgb[-7, 6], rgb[-7, -7])
    return [min(COLOURS, key=lambda name: np.abs(point - COLOURS[name]).sum()) for point in points]


def mask_for(data: bytes) -> np.ndarray:
    height, width = open_image(data).pixels.shape[:2]
    return np.ones((height, width), dtype=bool)


@pytest.mark.parametrize("path", sorted((CASES / "21-exif-orientation").glob("o*")), ids=lambda path: path.name)
def test_every_orientation_is_published_upright_without_a_tag(path: Path) -> None:
    expected = json.loads((CASES / "21-exif-orientation" / "expected.json").read_text())
    data = path.read_bytes()
    made = publish(data, mask_for(data), quality=92)
    picture = PilImage.open(io.BytesIO(made.jpeg))
    assert picture.format == "JPEG"
    assert picture.size == tuple(expected["size"]) == (made.width, made.height)
    assert corners(picture) == expected["corners"]
    assert not picture.getexif()
    mask = PilImage.open(io.BytesIO(made.png))
    assert mask.size == picture.size


@pytest.mark.parametrize("name", ["cmyk_adobe.jpg", "lab.tif"])
def test_other_colour_spaces_are_published_as_rgb(name: str) -> None:
    data = (CASES / "24-cmyk-and-friends" / name).read_bytes()
    picture = PilImage.open(io.BytesIO(publish(data, mask_for(data), quality=92).jpeg))
    assert picture.mode == "RGB"
    assert corners(picture) == ["red", "green", "blue", "yellow"]


def test_grey_is_published_as_rgb() -> None:
    data = (CASES / "24-cmyk-and-friends" / "gray.jpg").read_bytes()
    picture = PilImage.open(io.BytesIO(publish(data, mask_for(data), quality=92).jpeg))
    pixels = np.asarray(picture, dtype=int)
    assert picture.mode == "RGB"
    assert np.abs(pixels - pixels[..., :1]).max() <= 2


def test_transparency_is_laid_on_white() -> None:
    folder = CASES / "26-alpha"
    for name, points in json.loads((folder / "expected.json").read_text()).items():
        data = (folder / name).read_bytes()
        picture = PilImage.open(io.BytesIO(publish(data, mask_for(data), quality=95).jpeg))
        for place, colour in points.items():
            x, y = (int(value) for value in place.split(","))
            assert np.abs(np.array(picture.getpixel((x, y))) - colour).max() <= 12, (name, place)


def test_own_pixels_are_kept_and_metadata_is_not() -> None:
    exif = PilImage.Exif()
    exif[0x010E] = "Ilse Brandvik at home"
    gps = exif.get_ifd(0x8825)
    gps[1] = "N"
    gps[2] = (52.0, 30.0, 1.5)
    data = snapshots.jpeg(snapshots.picture(3), exif=exif.tobytes(), comment=b"a comment") + b"trailing bytes"
    assert b"Brandvik" in data
    made = publish(data, mask_for(data), quality=92)
    for word in (b"Brandvik", b"Exif", b"a comment", b"trailing"):
        assert word not in made.jpeg
    assert np.array_equal(open_image(made.jpeg).pixels, open_image(data).pixels)
    # nothing was encoded anew: the compressed pixels are the publisher's
    start = data.index(b"\xff\xda")
    assert data[start : data.rindex(b"\xff\xd9")] in made.jpeg


def test_a_mask_of_another_size_is_refused() -> None:
    data = snapshots.jpeg(snapshots.picture(3))
    with pytest.raises(ValueError, match="its image"):
        publish(data, np.ones((3, 3), dtype=bool), quality=92)
    with pytest.raises(ImageError):
        publish(b"no picture", np.ones((3, 3), dtype=bool), quality=92)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    quality=st.integers(30, 100),
    options=st.sampled_from(
        [{}, {"progressive": True}, {"optimize": True}, {"subsampling": 2}, {"restart_marker_rows": 1}]
    ),
    comment=st.binary(max_size=50),
)
def test_stripping_keeps_pixels_and_is_done_once(seed: int, quality: int, options: dict, comment: bytes) -> None:
    out = io.BytesIO()
    picture = PilImage.fromarray(snapshots.picture(seed, width=70, height=50))
    picture.save(out, "JPEG", quality=quality, comment=comment, **options)
    data = out.getvalue()
    stripped = without_metadata(data)
    assert np.array_equal(open_image(stripped).pixels, open_image(data).pixels)
    assert without_metadata(stripped) == stripped
    assert len(stripped) <= len(data)


def test_a_colour_profile_stays() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    out = io.BytesIO()
    PilImage.fromarray(snapshots.picture(1)).save(out, "JPEG", icc_profile=profile)
    assert PilImage.open(io.BytesIO(without_metadata(out.getvalue()))).info["icc_profile"] == profile


@given(st.binary(max_size=200))
def test_bytes_that_are_no_jpeg_raise_one_error(data: bytes) -> None:
    with pytest.raises(JpegError):
        without_metadata(data)
    with pytest.raises(JpegError):
        without_metadata(b"\xff\xd8" + data.replace(b"\xff\xd9", b""))


@settings(max_examples=25, deadline=None)
@given(limit=st.integers(4_000, 120_000), quality=st.integers(50, 100))
def test_shrinking_goes_by_rule_and_can_be_repeated(limit: int, quality: int) -> None:
    data = snapshots.jpeg(snapshots.picture(5, width=256, height=192, noise=True), quality=95)
    mask = np.zeros((192, 256), dtype=bool)
    mask[40:120, 60:200] = True
    whole = [publish(data, mask, quality=quality)]
    try:
        made, step = shrink(whole, [data], quality=quality, limit_bytes=limit)
    except ValueError:
        assert limit < 12_000
        return
    assert sum(picture.size_bytes for picture in made) <= limit
    assert made[0].mask.shape == (made[0].height, made[0].width)
    assert np.asarray(PilImage.open(io.BytesIO(made[0].jpeg))).shape[:2] == made[0].mask.shape
    if not step:
        assert made[0] is whole[0]
    elif step.startswith("quality"):
        assert int(step.split()[1]) in QUALITIES
    assert again(data, made[0].mask, step=step, quality=quality).jpeg == made[0].jpeg

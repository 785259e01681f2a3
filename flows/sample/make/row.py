"""`python -m flows.sample.make.row SNAPSHOT PICTURE [ANSWER]`: one row of a finished snapshot as the README shows it.

The image, the question, and the image with the mask laid over it, read from the snapshot's own Parquet files.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from PIL import Image as PilImage
from PIL import ImageDraw, ImageFont

WIDE = 560
MARGIN = 22
INK, PALE, TINT = (24, 28, 36), (110, 116, 128), np.array((20, 200, 150), np.float32)


def find_row(snapshot: Path, answer: str) -> dict[str, object]:
    """The first row by id with that answer. Raises LookupError."""
    for path in sorted((snapshot / "data").glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            if row["answer"] == answer:
                return dict(row)
    raise LookupError(f"no row of {snapshot} is answered by {answer!r}")


def draw_row(question: str, answer: str, image: PilImage.Image, mask: PilImage.Image) -> PilImage.Image:
    """The picture: image left, mask over the image right, question and answer above."""
    tall = round(WIDE * image.height / image.width)
    left = image.convert("RGB").resize((WIDE, tall), PilImage.Resampling.LANCZOS)
    cover = (
        np.asarray(mask.convert("L").resize((WIDE, tall), PilImage.Resampling.BILINEAR), np.float32)[..., None] / 255
    )
    pixels = np.asarray(left, np.float32)
    dim = pixels.mean(axis=2, keepdims=True) * 0.55 + 60
    right = cover * (0.62 * pixels + 0.38 * TINT) + (1 - cover) * dim
    head = 104
    sheet = PilImage.new("RGB", (2 * WIDE + 3 * MARGIN, head + tall + MARGIN), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, 20), question, fill=INK, font=ImageFont.load_default(25))
    draw.text((MARGIN, 62), f"answer: {answer}", fill=PALE, font=ImageFont.load_default(21))
    sheet.paste(left, (MARGIN, head))
    sheet.paste(PilImage.fromarray(np.clip(right, 0, 255).astype(np.uint8)), (2 * MARGIN + WIDE, head))
    return sheet


def main(snapshot: Path, out: Path, answer: str = "Eileen Collins") -> None:
    """Read the row, draw it, write it."""
    row = find_row(snapshot, answer)
    images, masks = row["images"], row["annotations"]
    assert isinstance(images, list)
    assert isinstance(masks, list)
    with PilImage.open(io.BytesIO(images[0]["bytes"])) as image, PilImage.open(io.BytesIO(masks[0]["bytes"])) as mask:
        picture = draw_row(str(row["question"]), answer, image, mask)
    out.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(192, dither=PilImage.Dither.FLOYDSTEINBERG).save(out, "PNG", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])

"""The rows that a reviewer sees: what a snapshot says of each, and its pictures and masks as files beside.

Pictures are unpacked once into a folder of the review, so that a page is served without reading Parquet again.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.core.schema import Rle, SnapshotManifest
from engine.core.store import BlobStore
from engine.snapshot.reviewed import Drawn, masks_digest
from engine.snapshot.verdicts import Stratum

COLOUR = (255, 96, 0)
INSIDE, EDGE = 96, 255


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of a review: its place in the order, its stratum, what is told of it, and its pictures' files."""

    id: str
    stratum: Stratum
    masks: str
    told: dict[str, Any]
    pictures: tuple[Path | None, ...]
    overlays: tuple[Path, ...]


def prepare(folder: Path, manifest: SnapshotManifest, drawn: Drawn, *, blobs: BlobStore, into: Path) -> list[Shown]:
    """Unpack the drawn rows into `into`, in the order drawn. Raises `TerminalError` for a damaged snapshot."""
    from engine.snapshot.revise import read_rows

    strata: dict[str, Stratum] = {
        **dict.fromkeys(drawn.lowest_margins, "lowest_margin"),
        **dict.fromkeys(drawn.random, "random"),
    }
    found: dict[str, Shown] = {}
    for row in read_rows(folder):
        if row.id not in strata:
            continue
        pictures: list[Path | None] = []
        overlays: list[Path] = []
        for number, mask in enumerate(row.provenance["masks"]):
            picture = _picture(row.default, row.provenance, number, blobs)
            path = into / f"{row.id}_{number}.picture" if picture else None
            if path is not None and picture is not None:
                path.write_bytes(picture)
            pictures.append(path)
            overlay = into / f"{row.id}_{number}.png"
            overlay.write_bytes(overlay_png(Rle(size=tuple(mask["size"]), counts=mask["counts"])))
            overlays.append(overlay)
        found[row.id] = Shown(
            row.id,
            strata[row.id],
            masks_digest(row.provenance["bindings"], row.provenance["gates"]),
            _told(row.default, row.provenance),
            tuple(pictures),
            tuple(overlays),
        )
    return [found[name] for name in (*drawn.random, *drawn.lowest_margins)]


def overlay_png(rle: Rle) -> bytes:
    """A mask as a see-through colour with a solid edge, at the image's size."""
    import numpy as np
    from PIL import Image as PilImage

    from engine.core.masks import decode_rle

    mask = decode_rle(rle)
    padded = np.pad(mask, 2)
    inner = mask.copy()
    for dy, dx in ((0, 2), (4, 2), (2, 0), (2, 4)):
        inner &= padded[dy : dy + mask.shape[0], dx : dx + mask.shape[1]]
    pixels = np.zeros((*mask.shape, 4), dtype=np.uint8)
    pixels[mask] = (*COLOUR, INSIDE)
    pixels[mask & ~inner] = (*COLOUR, EDGE)
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, "PNG", compress_level=3)
    return out.getvalue()


def _picture(default: dict[str, Any], provenance: dict[str, Any], number: int, blobs: BlobStore) -> bytes | None:
    """The published bytes; of a snapshot without pixels the blob in this home, None if that is not here."""
    from engine.core.errors import TerminalError

    if "images" in default:
        data: bytes | None = default["images"][number]["bytes"]
        return data
    try:
        return blobs.get(provenance["image_sha256"][number])
    except TerminalError:
        return None


def _told(default: dict[str, Any], provenance: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a row, as JSON values."""
    images = []
    for number in range(len(provenance["masks"])):
        binding = provenance["bindings"][number]
        images.append(
            {
                "width": provenance["image_widths"][number],
                "height": provenance["image_heights"][number],
                "caption": provenance["image_captions"][number],
                "credit": provenance["image_credits"][number],
                "url": provenance["image_urls"][number],
                "candidates": provenance["candidates"][number],
                "chosen": binding["candidate"],
                "rule": binding["rule"],
                "margin": binding["margin"],
                "binding": binding["evidence"],
                "gates": provenance["gates"][number],
            }
        )
    names = (
        "article_url", "title", "publisher", "domain", "entity_type", "aliases", "phrase", "position", "evidence",
        "evidence_in", "checks", "date_certain", "portable",
    )  # fmt: skip
    day = provenance["published_at"]
    return {
        "id": default["id"],
        "question": default["question"],
        "answer": default["answer"],
        **{name: provenance[name] for name in names},
        "published_at": day.isoformat() if isinstance(day, datetime) else "",
        "writer": " ".join(part for part in (provenance["writer"]["name"], provenance["writer"]["model"]) if part),
        "images": images,
    }


def names_of(rows: Sequence[Shown]) -> set[str]:
    """Ids of the rows of a review."""
    return {row.id for row in rows}

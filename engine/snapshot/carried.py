"""Corrections that outlive a rebuild: what people changed by hand is done again to rows that are made anew.

A window built again from other settings would bring back the answer that somebody corrected and the row that
somebody took out. The errata of the revision in place say what was changed, its rows hold the values. A row taken
out stays out until it stands in a revision again; a new answer or mask of a row that is not made this time is lost
with the row.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from engine.core.geometry import Mask
from engine.core.masks import decode_rle
from engine.core.schema import Rle
from engine.snapshot.amend import Change
from engine.snapshot.manifest import read_manifest
from engine.snapshot.revise import REBUILT, read_rows
from engine.snapshot.rows import Row

_MASK = re.compile(r"mask (\d+)", re.ASCII)


def carried(folder: Path, *, judged: Collection[str] = ()) -> dict[str, Change]:
    """Corrections of a snapshot folder that a rebuild has to make again, by row.

    `judged` are rows with verdicts in the home: whether those stay away is for the verdicts to say. Raises
    `TerminalError` for a folder that cannot be read.
    """
    words: dict[str, set[str]] = {}
    reasons: dict[str, str] = {}
    for erratum in read_manifest(folder).errata:
        if erratum.sample_id and erratum.because != REBUILT:
            words.setdefault(erratum.sample_id, set()).update(erratum.change.split(", "))
            reasons[erratum.sample_id] = erratum.because
    if not words:
        return {}
    found = {
        name: Change(name, reasons[name], drop=True)
        for name, told in words.items()
        if "removed" in told and name not in judged
    }
    for row in read_rows(folder):
        if row.id not in words:
            continue
        found.pop(row.id, None)
        numbers = sorted(int(match[1]) for word in words[row.id] if (match := _MASK.fullmatch(word)))
        masks = {n: decode_rle(Rle.model_validate(row.provenance["masks"][n])) for n in numbers}
        answer = str(row.default["answer"]) if "answer" in words[row.id] else None
        if masks or answer is not None:
            found[row.id] = Change(row.id, reasons[row.id], answer=answer, masks=masks)
    return found


def fitting(row: Row, change: Change) -> Change:
    """The change with its masks in the size that the row's pictures have now: other settings may shrink them."""
    sizes = list(zip(row.provenance["image_heights"], row.provenance["image_widths"], strict=True))
    return replace(change, masks={n: _resized(mask, sizes[n]) for n, mask in change.masks.items() if n < len(sizes)})


def _resized(mask: Mask, size: tuple[int, int]) -> Mask:
    if mask.shape == size:
        return mask
    picture = Image.fromarray(mask.astype(np.uint8)).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.asarray(picture, dtype=bool)

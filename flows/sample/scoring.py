"""The known truth of the sample week by row of a snapshot, for the demo's second score.

The snapshot's own masks were made by the same portable parts that the demo's segmenters are built on, which flatters
them; the known truth comes from how the scenes were composed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flows.sample.truth import true_mask

if TYPE_CHECKING:
    from engine.core.geometry import Mask

NOTES = (
    "Sample week: made-up news around composed scenes. The retrieval index is made of this week's articles and of "
    "reference pictures of the same things, so ROSE's gain here is by construction and says nothing of real news.",
    "'snapshot' are the snapshot's own masks, made by the same portable parts as the segmenters' (which flatters "
    "them); 'known truth' are the masks that the scenes were composed from.",
)


def truth_by_sample(folder: Path) -> dict[str, tuple[Mask | None, ...]]:
    """Per row id the true mask of each of its images, None where the truth has none."""
    import pyarrow.parquet as pq

    answers: dict[str, str] = {}
    for path in sorted((folder / "data").glob("*.parquet")):
        for row in pq.read_table(path, columns=["id", "answer"]).to_pylist():
            answers[row["id"]] = row["answer"]
    found: dict[str, tuple[Mask | None, ...]] = {}
    for path in sorted((folder / "provenance").glob("*.parquet")):
        for row in pq.read_table(path, columns=["id", "image_sha256"]).to_pylist():
            masks = tuple(true_mask(sha256, answers[row["id"]]) for sha256 in row["image_sha256"])
            if any(mask is not None for mask in masks):
                found[row["id"]] = masks
    return found

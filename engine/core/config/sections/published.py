"""Sections about what is published: the snapshot, and its place on the Hub."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.core.config.sections.base import Section


class SnapshotSection(Section):
    """What the published folder holds."""

    publish: Literal["bytes", "urls"] = "bytes"
    """bytes: images in the rows; urls: no pixels, for `nest rehydrate`."""
    license: str = "cc-by-nc-4.0"
    """Licence tag of the card: of the annotations; images stay their owners'."""
    language: tuple[str, ...] = ("en",)
    """Languages of the card."""
    contact: str = ""
    """Where a removal is asked for; needed to push."""
    jpeg_quality: int = Field(default=92, ge=50, le=100)
    """Quality of images that have to be re-encoded."""
    max_row_bytes: int = Field(default=2_000_000, ge=10_000)
    """Rows above are shrunk by rule."""
    max_shard_bytes: int = Field(default=500_000_000, ge=1_000_000)
    """Largest Parquet file."""
    row_group_bytes: int = Field(default=100_000_000, ge=100_000)
    """Largest row group, in real bytes."""


class HubSection(Section):
    """Where snapshots are pushed (token: `HF_TOKEN`). Nothing is pushed without `repo`."""

    repo: str = ""
    """owner/{name}: {name} stands for the snapshot's name; empty means no push."""
    private: bool = False
    """Create the repository private."""
    hold: bool = False
    """Push privately, until somebody looked at the rows and says `nest release W`."""
    sealed: int = Field(default=0, ge=0, le=52)
    """Weeks after a window's end for which only pictures, questions and a hash of the answers are public; 0: none."""

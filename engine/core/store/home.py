"""The home directory: where blobs, caches, windows, snapshots, predictions and reports lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.core.schema import Window
from engine.core.store.blobs import BlobStore
from engine.core.store.stages import StageDir


@dataclass(frozen=True, slots=True)
class Home:
    """Paths under `$NEST_HOME`; nothing is created by asking for a path."""

    root: Path

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(self.root / "blobs")

    def cache(self, kind: str) -> Path:
        """cache/http, cache/llm, cache/search."""
        return self.root / "cache" / kind

    @property
    def harvest(self) -> Path:
        return self.root / "harvest"

    @property
    def weights(self) -> Path:
        return self.root / "weights"

    def window(self, window: Window) -> Path:
        return self.root / "windows" / window.label

    def stage(self, window: Window, stage: str, key: str) -> StageDir:
        return StageDir(self.window(window) / stage / key)

    def snapshot(self, name: str) -> Path:
        return self.root / "snapshots" / name

    def predictions(self, snapshot: str, segmenter: str, key: str) -> StageDir:
        safe = segmenter.replace(":", "+").replace("/", "_")
        return StageDir(self.root / "predictions" / snapshot / safe / key)

    def report(self, snapshot: str, key: str) -> Path:
        return self.root / "reports" / snapshot / key

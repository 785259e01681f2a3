"""What a check of a snapshot found wrong: one closed list of kinds, so that programs can act on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of findings."""

    # the folder
    MANIFEST_MISSING = "manifest_missing"
    MANIFEST_DAMAGED = "manifest_damaged"
    FILE_MISSING = "file_missing"
    FILE_EXTRA = "file_extra"
    FILE_CHANGED = "file_changed"
    SHARD_NAMES = "shard_names"
    NO_DATA = "no_data"
    # the tables
    PARQUET_DAMAGED = "parquet_damaged"
    SCHEMA = "schema"
    ROWS = "rows"
    ID_TWICE = "id_twice"
    ID_ORDER = "id_order"
    TEXT_EMPTY = "text_empty"
    TEXT_UNSEEN = "text_unseen"
    # pictures and masks
    NO_BYTES = "no_bytes"
    FOREIGN_PATH = "foreign_path"
    IMAGE_BROKEN = "image_broken"
    IMAGE_TURNED = "image_turned"
    MASK_BROKEN = "mask_broken"
    MASK_MODE = "mask_mode"
    MASK_SIZE = "mask_size"
    MASK_EMPTY = "mask_empty"
    MASK_COUNT = "mask_count"
    # provenance
    PROVENANCE_MISSING = "provenance_missing"
    PROVENANCE_EXTRA = "provenance_extra"
    PROVENANCE_INCOMPLETE = "provenance_incomplete"
    PROVENANCE_DIFFERS = "provenance_differs"
    # the card
    CARD_MISSING = "card_missing"
    CARD_INVALID = "card_invalid"
    CARD_ROWS = "card_rows"
    CARD_FEATURES = "card_features"
    CARD_BYTES = "card_bytes"
    CARD_SIZE_CATEGORY = "card_size_category"
    CARD_REPOSITORY = "card_repository"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: the file (relative to the folder, "" for the folder itself), its kind, and the
    details as one sentence."""

    file: str
    kind: Kind
    detail: str


class Findings(list[Finding]):
    """Collects findings; of one kind in one file at most `LIMIT` are kept, the rest is only counted by `closed`."""

    LIMIT = 20

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[str, Kind], int] = {}

    def note(self, file: str, kind: Kind, detail: str) -> None:
        if Finding(file, kind, detail) in self:
            return  # found on two ways
        count = self._counts.get((file, kind), 0) + 1
        self._counts[(file, kind)] = count
        if count <= self.LIMIT:
            self.append(Finding(file, kind, detail))

    def closed(self) -> list[Finding]:
        """All findings, with one more for each kind that was cut."""
        more = [
            Finding(file, kind, f"and {count - self.LIMIT} more of this kind")
            for (file, kind), count in self._counts.items()
            if count > self.LIMIT
        ]
        return [*self, *more]

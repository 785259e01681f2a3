"""What people changed by hand stays changed when the window is built again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import snapshots

from engine.core.masks import decode_rle
from engine.core.schema import Rejected, Rle, SnapshotManifest
from engine.core.store import BlobStore, committed_directory
from engine.snapshot.amend import Change, amend
from engine.snapshot.build import build
from engine.snapshot.carried import carried, fitting
from engine.snapshot.revise import read_rows
from engine.snapshot.rows import Row
from engine.snapshot.verify import verify

MASK = np.zeros((48, 64), dtype=bool)
MASK[5:20, 5:30] = True


class Rebuilder:
    """A week of five rows whose second revision has a new answer, a new mask and a row less."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = BlobStore(folder / "blobs")
        self.samples = snapshots.samples(5, self.blobs)
        self.build("r1", None, {})
        self.ids = sorted(self.rows("r1"))
        changes = [
            Change(self.ids[0], "the caption named another", answer="Ada Byron"),
            Change(self.ids[1], "the mask missed the hat", masks={0: MASK}),
            Change(self.ids[2], "not in the picture", drop=True),
        ]
        amend(folder / "r1", folder / "r2", changes=changes)

    def build(self, name: str, previous: str | None, corrections: Mapping[str, Change]) -> list[Rejected]:
        lost: list[Rejected] = []
        with committed_directory(self.folder / name) as temporary:
            self.manifest: SnapshotManifest = build(
                temporary,
                self.samples,
                window=snapshots.WINDOW,
                config=snapshots.CONFIG,
                hub_repo="news/{name}",
                blobs=self.blobs,
                key="k",
                revision=name,
                previous=self.folder / previous if previous else None,
                corrections=corrections,
                losses=lost,
            )
        return lost

    def rows(self, name: str) -> dict[str, Row]:
        return {row.id: row for row in read_rows(self.folder / name)}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Rebuilder:
    return Rebuilder(tmp_path_factory.mktemp("week"))


def test_a_rebuild_makes_the_corrections_again(week: Rebuilder) -> None:
    lost = week.build("r3", "r2", carried(week.folder / "r2"))
    rows = week.rows("r3")
    assert sorted(rows) == [name for name in week.ids if name != week.ids[2]]
    assert rows[week.ids[0]].default["answer"] == "Ada Byron"
    assert (decode_rle(Rle.model_validate(rows[week.ids[1]].provenance["masks"][0])) == MASK).all()
    assert [(item.item, item.code.value, item.detail) for item in lost] == [
        (week.ids[2], "reviewed_wrong", "not in the picture")
    ]
    assert verify(week.folder / "r3") == []
    # nothing differs from the corrected revision, so nothing is told twice, and the next one carries on
    assert {item.revision for item in week.manifest.errata} == {"r2"}
    assert set(carried(week.folder / "r3")) == set(week.ids[:3])


def test_without_corrections_the_faults_would_come_back(week: Rebuilder) -> None:
    week.build("r4", "r2", {})
    rows = week.rows("r4")
    assert sorted(rows) == week.ids
    assert rows[week.ids[0]].default["answer"] != "Ada Byron"
    # and a row that was wanted back is not taken out once more
    assert week.ids[2] not in carried(week.folder / "r4")


def test_rows_with_verdicts_are_left_to_the_verdicts(week: Rebuilder) -> None:
    assert set(carried(week.folder / "r2", judged={week.ids[2]})) == set(week.ids[:2])


def test_a_corrected_mask_follows_its_picture_into_another_size(week: Rebuilder) -> None:
    change = carried(week.folder / "r2")[week.ids[1]]
    row = week.rows("r1")[week.ids[1]]
    smaller = replace(row, provenance={**row.provenance, "image_heights": [24], "image_widths": [32]})
    mask = fitting(smaller, change).masks[0]
    assert mask.shape == (24, 32)
    assert mask.mean() == pytest.approx(MASK.mean(), abs=0.03)
    assert fitting(row, change).masks[0] is change.masks[0]

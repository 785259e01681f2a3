"""`nest amend` and `nest takedown` as typed: the dry run, what is refused, and what the scores say after."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PilImage
from support import snapshots
from support.desk import NAME, Desk
from support.hub import LoopbackHub

from engine.core.masks import encode_png, encode_rle
from engine.core.schema import Prediction
from engine.core.store import Home
from engine.snapshot.masks_in import read_mask
from engine.snapshot.revise import read_rows
from flows.stages.correct import _stored

BECAUSE = ("--because", "the caption names her")
SHORT = NAME.removeprefix("NEST_")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with LoopbackHub() as hub:
        found = Desk(tmp_path, hub)
        snapshots.snapshot(found.snapshot, 4)
        shutil.rmtree(found.snapshot.parent / "blobs", ignore_errors=True)
        yield found


@pytest.mark.slow
def test_a_dry_run_refuses_what_the_real_run_refuses(desk: Desk) -> None:
    row = next(read_rows(desk.snapshot))
    part = np.zeros((48, 64), dtype=bool)
    part[5:20, 5:30] = True
    grey = np.tile(np.arange(64, dtype=np.uint8), (48, 1))
    pictures = {"part": encode_png(part), "small": encode_png(part[:9]), "empty": encode_png(part & False)}
    pictures["full"] = encode_png(part | True)
    for name, data in pictures.items():
        (desk.folder / f"{name}.png").write_bytes(data)
    PilImage.fromarray(grey).save(desk.folder / "grey.png")
    PilImage.fromarray(part.astype(np.uint8) * 120).save(desk.folder / "dim.png")
    refused = {
        ("nobody", "--drop", *BECAUSE): "has no row",
        (row.id, "--mask", "small.png", *BECAUSE): "its image 64x48",
        (row.id, "--mask", "empty.png", *BECAUSE): "is empty",
        (row.id, "--mask", "full.png", *BECAUSE): "--drop",
        (row.id, "--mask", "grey.png", *BECAUSE): "not binary",
        (row.id, "--mask", "dim.png", *BECAUSE): "not binary",
        (row.id, "--mask", "3=part.png", *BECAUSE): "there is no number 3",
        (row.id, "--mask", "3=", *BECAUSE): "names no file",
        (row.id, "--mask", "part.png", "--mask", "0=full.png", *BECAUSE): "two files",
        (row.id, "--answer", "Ada", "--because", " "): "--because",
        (row.id, "--answer", str(row.default["answer"]), *BECAUSE): "changes nothing",
        (row.id, "--answer", "Ada\u202eByron", *BECAUSE): "U+202E",
    }
    for words, said in refused.items():
        for dry in ((), ("--dry-run",)):
            assert said in desk.nest("amend", NAME, *words, *dry, code=2).stderr, words
    before = sorted(desk.snapshot.parent.rglob("*"))
    would = desk.nest("amend", NAME, row.id, "--mask", "part.png", *BECAUSE, "--dry-run").stderr
    assert "mask 0" in would
    assert "nothing was written" in would
    assert sorted(desk.snapshot.parent.rglob("*")) == before


@pytest.mark.slow
def test_stored_predictions_count_for_the_corrected_revision(desk: Desk) -> None:
    desk.nest("score", SHORT, "--segmenter", "portable")
    first, second, *_ = read_rows(desk.snapshot)
    done = desk.nest("amend", SHORT, first.id, "--answer", "Ada Byron", *BECAUSE).stderr
    assert f"nest score {SHORT}" in done
    assert "the predictions of 1 segmenters count for r2 too" in done
    assert f"nest score {SHORT}" in desk.nest("report", SHORT, code=2).stderr
    stored = sorted((desk.folder / "home" / "predictions").rglob("manifest.json"))
    made = {path: path.read_bytes() for path in stored}
    desk.nest("score", SHORT, "--segmenter", "portable")
    assert {
        path: path.read_bytes() for path in sorted((desk.folder / "home" / "predictions").rglob("manifest.json"))
    } == made
    assert "r2" in desk.nest("cite", SHORT).stdout
    # a row that goes takes its prediction along, and a segmenter stays one
    told = json.loads(desk.nest("amend", SHORT, second.id, "--drop", *BECAUSE, "--json").stdout)
    assert (told["revision"], told["rows"]) == ("r3", 3)
    ((label, place),) = _stored(Home(desk.folder / "home"), NAME)
    assert label == "portable"
    assert second.id not in {found.sample_id for found in place.iterate(Prediction)}
    assert len(list(place.iterate(Prediction))) == 3


@pytest.mark.slow
def test_several_runs_of_one_segmenter_are_ranked_apart_and_never_spoil_a_correction(desk: Desk) -> None:
    """Predictions under two settings lie side by side; what cannot be read of them is no failure of the correction."""
    home = Home(desk.folder / "home")
    rows = list(read_rows(desk.snapshot))
    first, second, *_ = rows
    places = {key: home.predictions(NAME, "portable", key) for key in ("aaaaaa1", "bbbbbb2")}
    for key, place in places.items():
        masks = {
            row.id: [encode_rle(read_mask(cell["bytes"]).mask) for cell in row.default["annotations"]] for row in rows
        }
        if key == "bbbbbb2":
            masks[first.id] = [encode_rle(np.ones(rle.size, dtype=bool)) for rle in masks[first.id]]
        found = [Prediction(sample_id=name, segmenter="portable", masks=tuple(told)) for name, told in masks.items()]
        place.commit(found, [], stage="predict", found=len(found))
    told = desk.nest("amend", SHORT, first.id, "--drop", *BECAUSE).stderr
    assert "is r2 now: 0 rows corrected, 1 left out, 3 rows" in told
    assert "portable#aaaaaa: stays at 1  (gIoU 100.0 to 100.0)" in told
    # the row that went was the one that it had wrong
    assert "portable#bbbbbb: moves from 2 to 1  (gIoU" in told
    part = next(places["aaaaaa1"].path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:-30])
    told = desk.nest("amend", SHORT, second.id, "--answer", "Ada Byron", *BECAUSE).stderr
    assert "is r3 now: 1 rows corrected, 0 left out, 3 rows" in told
    assert "cannot be counted for r3" in told


@pytest.mark.slow
def test_a_dry_takedown_counts_what_the_real_one_removes(desk: Desk) -> None:
    nothing = desk.nest("takedown", "--entity", "Nobody Atall", "--dry-run").stderr
    assert "matched" in nothing
    assert "from now on" not in nothing
    assert "nest status" in desk.nest("takedown", "--entity", "Nobody Atall").stderr
    desk.nest("score", SHORT, "--segmenter", "portable")
    row = next(read_rows(desk.snapshot))
    desk.nest("amend", SHORT, row.id, "--answer", "Ada Byron", *BECAUSE)
    would = desk.nest("takedown", "--id", row.id, "--dry-run").stderr
    assert "would remove 1 rows in 2 revisions (2 entries)" in would
    done = desk.nest("takedown", "--id", row.id).stderr
    assert would.splitlines()[0].removeprefix("would remove") == done.splitlines()[0].removeprefix("removed")
    assert "removed the reports that show it" in done
    assert f"nest verify {SHORT}" in done

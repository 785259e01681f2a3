"""After a takedown nothing under the home holds the picture's bytes, its address or the name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import snapshots
from support.takedowns import EARLIER, NAME, Place, everything, furnish, grep, traces

from engine.core.errors import BusyError, ConfigError
from engine.core.schema import Article, Prediction, Rejected, Sample
from engine.core.store import Home
from engine.snapshot.manifest import read_manifest
from engine.snapshot.needles import Needles
from engine.snapshot.optout import read_optout
from engine.snapshot.revise import read_rows
from engine.snapshot.samples import join
from engine.snapshot.takedown import Wish, takedown
from engine.snapshot.verify import verify

AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return furnish(tmp_path_factory.mktemp("template") / "home")


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Place:
    """A copy of the home for one test."""
    shutil.copytree(template.home, tmp_path / "home")
    return replace(template, home=tmp_path / "home")


@pytest.mark.parametrize("by", ["id", "url"])
def test_nothing_is_left_here(place: Place, by: str) -> None:
    row = next(row for row in read_rows(place.later) if row.default["answer"] == NAME)
    wish = Wish(ids=(row.id,)) if by == "id" else Wish(urls=(place.image.url,))
    assert grep(everything(place.home), *traces(place))
    takedown(place.home, wish, on_hub=False)
    assert grep(everything(place.home), *traces(place)) == []
    assert read_manifest(place.later).rows == read_manifest(place.earlier).rows + 3 == 5


def test_stages_keep_their_keys_and_their_files_are_known(place: Place) -> None:
    home = Home(place.home)
    stage = home.stage(snapshots.WINDOW, "collect", "k1")
    before = stage.digests()
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    assert stage.digests() == before
    told = stage.manifest()
    assert "part-00000.jsonl" in told["purged"]
    assert all(NAME not in article.text for article in stage.read(Article))
    predictions = home.predictions(snapshots.WINDOW.name, "s", "k").read(Prediction)
    kept = {row.id for row in read_rows(place.later)}
    assert {item.sample_id for item in predictions} == kept


def test_later_builds_consult_the_list(place: Place, tmp_path: Path) -> None:
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    blobs = Home(tmp_path / "new").blobs
    found = join(*snapshots.records(6, blobs), opt_out=read_optout(place.home))
    lost = [item for item in found if isinstance(item, Rejected)]
    assert lost
    assert {item.code.value for item in lost} <= {"taken_down", "opted_out"}
    assert all(item.question.answer != NAME for item in found if isinstance(item, Sample))
    assert not any(NAME in item.line() for item in lost)


def test_the_receipt_and_the_list_spread_nothing(place: Place) -> None:
    receipt = takedown(place.home, Wish(entities=(NAME,)), on_hub=False, now=AT)
    written = (place.home / receipt.path).read_text(encoding="utf-8")
    listed = (place.home / "optout.jsonl").read_text(encoding="utf-8")
    for text in (written, listed):
        assert not Needles(names=frozenset({NAME})).in_text(text)
        assert place.image.url not in text
    assert json.loads(written)["at"] == "2026-12-01T12:00:00Z"
    assert not receipt.complete
    assert all("left alone" in failure for failure in receipt.failures)


def test_nobody_writes_meanwhile(place: Place) -> None:
    stage = Home(place.home).stage(snapshots.WINDOW, "collect", "k1")
    before = dict(everything(place.home / "snapshots"))
    with stage.lock(), pytest.raises(BusyError, match="is being written by"):
        takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    code = "import sys; from pathlib import Path; from engine.core.store import register_writer\n"
    code += "register_writer(Path(sys.argv[1])); print('writing', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        with pytest.raises(BusyError, match="another process"):
            takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
        writer.communicate()
    assert dict(everything(place.home / "snapshots")) == before
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    stage.check()


def test_pilots_and_mixtures_lose_their_galleries_too(place: Place) -> None:
    pilot = place.home / "snapshots" / f"{place.later.name}.pilot9"
    shutil.copytree(place.later, pilot)
    row = next(row.id for row in read_rows(place.later) if row.default["answer"] == NAME)
    other = next(row.id for row in read_rows(place.later) if row.default["answer"] != NAME)
    home, told = Home(place.home), {}
    for name, identity in (("NEST_", f"0-NEST/{row}"), (f"{pilot.name}", row), ("other", other)):
        report = place.home / "reports" / name / "k"
        report.mkdir(parents=True)
        (report / "report.json").write_text(json.dumps({"samples": [{"id": identity}]}))
        (report / "report.html").write_text("small pictures")
        items = [Prediction(sample_id=one, segmenter="s", masks=(None,)) for one in (identity, "0-NEST/else")]
        told[name] = home.predictions(name, "s", "k")
        told[name].commit(items, [], stage="predict", found=2)
    takedown(place.home, Wish(ids=(row,)), on_hub=False)
    assert not any((place.home / "reports" / name / "k").exists() for name in ("NEST_", pilot.name))
    assert (place.home / "reports" / "other" / "k" / "report.html").exists()
    assert {name: len(found.read(Prediction)) for name, found in told.items()} == {
        "NEST_": 1,
        pilot.name: 1,
        "other": 2,
    }


def test_a_shard_that_lost_lines_is_still_a_finished_shard(place: Place) -> None:
    stage = Home(place.home).stage(snapshots.WINDOW, "collect", "k1")
    size = (stage.shard(0) / "part-00000.jsonl").stat().st_size
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    assert (stage.shard(0) / "part-00000.jsonl").stat().st_size < size
    assert stage.shard_done(0)


def test_a_domain_goes_with_its_pages_and_pictures(place: Place) -> None:
    takedown(place.home, Wish(domains=("elsewhere.example",)), on_hub=False)
    assert grep(everything(place.home), b"elsewhere.example") == []
    assert read_manifest(place.earlier).rows == 2
    assert verify(place.earlier) == []


@pytest.mark.parametrize(
    "wish",
    [
        Wish(),
        Wish(images=("zz",)),
        Wish(domains=("example",)),
        Wish(entities=("Li",)),
        Wish(urls=("something",)),
    ],
)
def test_wishes_that_cannot_be_read(place: Place, wish: Wish) -> None:
    with pytest.raises(ConfigError):
        takedown(place.home, wish)


def test_rows_that_go_because_their_picture_is_a_copy_are_told_apart(place: Place) -> None:
    named = next(row.id for row in read_rows(place.later) if row.default["answer"] == NAME)
    receipt = takedown(place.home, Wish(ids=(named,)), on_hub=False, dry_run=True)
    # the earlier week holds the same photo under another name
    copy = next(row.id for row in read_rows(place.earlier) if row.default["answer"] == "Nobody Known")
    assert copy in receipt.rows[EARLIER.name]
    assert copy in receipt.alike
    assert named not in receipt.alike
    by_picture = takedown(place.home, Wish(images=(place.image.sha256,)), on_hub=False, dry_run=True)
    assert copy in by_picture.ids
    assert by_picture.alike == ()

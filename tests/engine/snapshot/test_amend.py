"""Corrections: changed rows, errata, the next revision on a Hub, and what is refused."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image as PilImage
from support import snapshots
from support.hub import LoopbackHub

from engine.core.errors import ConfigError, NestError, RefusedError, TerminalError
from engine.core.masks import decode_rle, encode_png
from engine.core.schema import Rle, Sample, SnapshotManifest
from engine.core.store import BlobStore, committed_directory
from engine.snapshot.amend import Change, RankChange, Review, amend, check, mask_change, rank_changes, read_reviews
from engine.snapshot.build import build
from engine.snapshot.findings import Kind
from engine.snapshot.hub import push
from engine.snapshot.manifest import read_manifest
from engine.snapshot.names import SUPERSEDED
from engine.snapshot.revise import next_revision, put_in_place, read_rows, rewrite
from engine.snapshot.rows import Row
from engine.snapshot.verify import verify


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("home") / snapshots.WINDOW.name
    snapshots.snapshot(found, 4)
    return found


def ids(folder: Path) -> list[str]:
    return [row.id for row in read_rows(folder)]


def test_amend_changes_what_it_says_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    names = ids(folder)
    new_mask = np.zeros((48, 64), dtype=bool)
    new_mask[5:20, 5:30] = True
    changes = [
        Change(names[0], "the caption named another", answer=" Ada Byron "),
        Change(names[1], "the mask missed the hat", masks={0: new_mask}),
        Change(names[2], "not in the picture", drop=True),
    ]
    out = tmp_path / "r2"
    manifest = amend(folder, out, changes=changes)
    assert verify(out) == []
    assert (manifest.revision, manifest.supersedes) == ("r2", f"{manifest.name}@r1")
    assert manifest.rows == 3
    assert [(item.sample_id, item.change) for item in manifest.errata] == [
        (names[0], "answer"),
        (names[1], "mask 0"),
        (names[2], "removed"),
    ]
    assert manifest.funnel[-1].rejected == {"reviewed_wrong": 1}
    old = {row.id: row for row in read_rows(folder)}
    new = {row.id: row for row in read_rows(out)}
    assert new.keys() == old.keys() - {names[2]}
    assert new[names[0]].default["answer"] == "Ada Byron"
    assert new[names[3]].default == old[names[3]].default
    read = np.asarray(PilImage.open(io.BytesIO(new[names[1]].default["annotations"][0]["bytes"]))) > 0
    assert np.array_equal(read, new_mask)
    assert new[names[1]].default["images"] == old[names[1]].default["images"]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "the mask missed the hat" in card
    assert 'revision="r2"' in card


def test_an_amended_revision_replaces_the_old_one_on_the_hub(folder: Path, tmp_path: Path) -> None:
    with LoopbackHub() as hub:
        to = {"repo": "news/{name}", "token": hub.token, "endpoint": hub.endpoint, "sleep": lambda seconds: None}
        push(folder, **to)
        out = tmp_path / "r2"
        amend(folder, out, changes=[Change(ids(folder)[0], "wrong", answer="Ada")])
        assert push(out, **to).done == "pushed"
        repo = hub.repo(f"news/{snapshots.WINDOW.name}")
        assert set(repo.tags) == {"r1", "r2"}
        assert repo.tags["r2"] == repo.branches["main"] != repo.tags["r1"]
        # the old revision cannot come back over the new one
        with pytest.raises(RefusedError, match="r1"):
            push(folder, **to)
        assert push(out, **to).done == "nothing to do"


def test_stale_shards_go_with_the_commit_of_the_revision(tmp_path: Path) -> None:
    config = snapshots.CONFIG.model_copy(update={"row_group_bytes": 100_000, "max_shard_bytes": 1_000_000})
    big = tmp_path / "big"
    snapshots.snapshot(big, 12, config=config, width=320, height=240, images_per_article=3, noise=True)
    out = tmp_path / "r2"
    amend(big, out, changes=[Change(name, "thinned out", drop=True) for name in ids(big)[2:]])
    old, new = (sorted(path.name for path in (folder / "data").glob("*.parquet")) for folder in (big, out))
    assert len(old) > len(new)
    with LoopbackHub() as hub:
        to = {"repo": "news/{name}", "token": hub.token, "endpoint": hub.endpoint}
        push(big, **to)
        result = push(out, **to)
        assert set(result.removed) == {f"data/{name}" for name in set(old) - set(new)}
        there = set(hub.files(f"news/{snapshots.WINDOW.name}")) - {".gitattributes"}
        assert there == {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def test_put_in_place_keeps_the_old_revision_aside(tmp_path: Path) -> None:
    place = tmp_path / "snapshots" / snapshots.WINDOW.name
    snapshots.snapshot(place, 2)
    new = tmp_path / "new"
    amend(place, new, changes=[Change(ids(place)[0], "wrong", answer="Ada")])
    aside = put_in_place(new, place)
    assert aside == tmp_path / "snapshots" / SUPERSEDED / f"{place.name}.r1"
    assert read_manifest(place).revision == "r2"
    assert read_manifest(aside).revision == "r1"


def test_a_rebuilt_revision_lists_what_differs(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = snapshots.samples(5, blobs)

    def make(name: str, rows: list[Sample], **options: Any) -> SnapshotManifest:
        with committed_directory(tmp_path / name) as temporary:
            return build(
                temporary,
                rows,
                window=snapshots.WINDOW,
                config=snapshots.CONFIG,
                hub_repo="news/{name}",
                blobs=blobs,
                key="k",
                **options,
            )

    make("r1", found[:4], tombstones=["0" * 16])
    told = make("r2", found[1:], revision="r2", previous=tmp_path / "r1", because="another threshold")
    before, after = set(ids(tmp_path / "r1")), set(ids(tmp_path / "r2"))
    assert {(item.sample_id, item.change) for item in told.errata} == {
        *((name, "removed") for name in before - after),
        *((name, "added") for name in after - before),
    }
    assert {item.because for item in told.errata} == {"another threshold"}
    assert told.tombstones == ("0" * 16,)
    assert told.supersedes == f"{snapshots.WINDOW.name}@r1"
    assert verify(tmp_path / "r2") == []
    # the next one keeps what was told before
    again = make("r3", found[1:], revision="r3", previous=tmp_path / "r2")
    assert again.errata == told.errata


FULL = np.ones((48, 64), dtype=bool)
PART = FULL.copy()
PART[:, 40:] = False


UNSEEN = ("\n", "\t", "\0", "\x1b[31m", "\x7f", "\x85", "\x9b", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda name: [], ConfigError),
        (lambda name: [Change("nobody", "x", drop=True)], ConfigError),
        (lambda name: [Change(name, "x")], ConfigError),
        (lambda name: [Change(name, " ", drop=True)], ConfigError),
        (lambda name: [Change(name, "x", answer="  ")], ConfigError),
        (lambda name: [Change(name, "x", masks={3: PART})], ConfigError),
        (lambda name: [Change(name, "x", masks={0: PART[:5]})], ConfigError),
        (lambda name: [Change(name, "x", masks={0: FULL})], ConfigError),
        (lambda name: [Change(name, "two\nlines", drop=True)], ConfigError),
        *((lambda name, odd=odd: [Change(name, "x", answer=f"Ada{odd}Byron")], ConfigError) for odd in UNSEEN),
        (lambda name: [Change(name, "x", masks={0: ~FULL})], ConfigError),
        (lambda name: [Change(name, "x", drop=True), Change(name, "y", drop=True)], RefusedError),
    ],
)
def test_changes_that_do_not_fit(folder: Path, tmp_path: Path, change: object, error: type[NestError]) -> None:
    out = tmp_path / "out"
    with pytest.raises(error) as real:
        amend(folder, out, changes=change(ids(folder)[0]))  # type: ignore[operator]
    # a dry run says the same
    with pytest.raises(error) as dry:
        check(folder, changes=change(ids(folder)[0]))  # type: ignore[operator]
    assert str(dry.value) == str(real.value)
    assert not list(tmp_path.iterdir())


def test_what_is_there_already_is_no_change(folder: Path) -> None:
    row = next(read_rows(folder))
    told = row.provenance["masks"][0]
    mask = decode_rle(Rle(size=tuple(told["size"]), counts=told["counts"]))
    for change in (
        Change(row.id, "x", answer=f" {row.default['answer']} "),
        Change(row.id, "x", masks={0: mask}),
        Change(row.id, "x", answer="Ada", masks={0: mask}),
    ):
        with pytest.raises(ConfigError, match="changes nothing"):
            check(folder, changes=[change])
    assert check(folder, changes=[Change(row.id, "x", answer="Ada"), Change(ids(folder)[1], "x", drop=True)]) == 3
    assert check(folder, changes=[], measured={"Error people found": "0 of 3"}) == 4


def test_verify_finds_what_cannot_be_seen(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r2"

    def change(row: Row) -> Row:
        return replace(row, default={**row.default, "answer": row.default["answer"] + "\u202e"})

    rewrite(folder, out, change=change, revision="r2")
    assert {finding.kind for finding in verify(out)} == {Kind.TEXT_UNSEEN}


def test_an_existing_folder_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TerminalError, match="exists"):
        amend(folder, tmp_path, changes=[Change(ids(folder)[0], "x", drop=True)])


def test_masks_and_reviews_from_files(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    path.write_bytes(encode_png(FULL))
    grey = tmp_path / "grey.png"
    PilImage.fromarray(np.arange(48 * 64, dtype=np.uint16).reshape(48, 64).astype(np.uint8)).save(grey)
    with pytest.raises(ConfigError, match="not binary"):
        mask_change({0: grey})
    assert np.array_equal(mask_change({1: path})[1], FULL)
    (tmp_path / "not.png").write_bytes(b"no")
    with pytest.raises(ConfigError, match="not a mask"):
        mask_change({0: tmp_path / "not.png"})
    reviews = [
        Review(sample_id="a", verdict="right"),
        Review(sample_id="b", verdict="wrong_answer", answer="Ada"),
        Review(sample_id="c", verdict="wrong_answer"),
        Review(sample_id="d", verdict="wrong_mask"),
    ]
    file = tmp_path / "reviews.jsonl"
    file.write_text("\n".join(review.line() for review in reviews) + "\n")
    assert read_reviews(file) == [
        Change("b", "review: wrong answer", answer="Ada"),
        Change("c", "review: wrong answer", drop=True),
        Change("d", "review: wrong mask", drop=True),
    ]
    file.write_text('\n{"sample_id": "a", "verdict": "wrong_answer", "answer": "Ada\\u202eByron"}\n')
    with pytest.raises(ConfigError, match=r"line 2: the answer holds U\+202E"):
        read_reviews(file)
    file.write_text('{"sample_id": "a", "verdict": "maybe"}\n')
    with pytest.raises(ConfigError, match="line 1"):
        read_reviews(file)


def test_rank_changes() -> None:
    before = {"a": 0.5, "b": 0.4, "c": 0.3, "gone": 0.9}
    after = {"a": 0.41, "b": 0.42, "c": 0.42}
    assert rank_changes(before, after) == [
        RankChange("b", 2, 1, 0.4, 0.42),
        RankChange("c", 3, 1, 0.3, 0.42),
        RankChange("a", 1, 3, 0.5, 0.41),
    ]


def test_revisions_are_counted() -> None:
    assert next_revision("r9") == "r10"
    with pytest.raises(TerminalError):
        next_revision("2")


def test_parquet_of_the_amended_folder_is_readable(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r2"
    amend(folder, out, changes=[Change(ids(folder)[0], "wrong", answer="Ada")])
    assert pq.read_table(out / "data").num_rows == 4

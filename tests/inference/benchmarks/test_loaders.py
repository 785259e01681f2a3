"""The other benchmarks' loaders, on tiny samples of their formats, right and wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pycocotools import mask as coco
from support.evaluation import WINDOW, benchmark_of, box_mask, picture, predict, write_snapshot

from engine.core.errors import ConfigError, TerminalError
from engine.core.images import encode_jpeg
from inference.benchmarks import nest_plus, reasonseg, refcoco, segzero
from inference.benchmarks.base import Benchmark, TruthMask
from inference.benchmarks.registry import open_benchmark
from inference.benchmarks.safe_pickle import read_plain_pickle
from inference.metrics.score import score
from inference.metrics.scorestring import parse

SQUARE = [[2.0, 2.0], [21.0, 2.0], [21.0, 17.0], [2.0, 17.0]]
INNER = [[5.0, 5.0], [9.0, 5.0], [9.0, 9.0], [5.0, 9.0]]


# ---------------------------------------------------------------- ReasonSeg


def reason_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    texts = {"a": "the thing that keeps food cold", "b": "der Kühlschrank", "c": "nothing drawn"}
    shapes = {
        "a": [("ignore_1", INNER), ("target", SQUARE), ("flag", SQUARE)],
        "b": [("target", SQUARE)],
        "c": [("flag", SQUARE)],
    }
    for name, text in texts.items():
        (folder / f"{name}.jpg").write_bytes(encode_jpeg(picture(24, 32, seed=1)))
        found = {
            "text": [text, f"another wording of {name}"],
            "is_sentence": name == "a",
            "shapes": [{"label": label, "points": points} for label, points in shapes[name]],
        }
        # one of the published files is not UTF-8
        raw = json.dumps(found, ensure_ascii=False).encode("cp1252" if name == "b" else "utf-8")
        (folder / f"{name}.json").write_bytes(raw)
    return folder


def test_reasonseg(tmp_path: Path) -> None:
    reason_folder(tmp_path / "val")
    found = open_benchmark(f"reasonseg:{tmp_path}?split=val")
    a, b = found
    assert (a.id, a.question, b.question) == ("a", "the thing that keeps food cold", "der Kühlschrank")
    assert (a.tags["query"], b.tags["query"]) == ("sentence", "phrase")
    truth = a.masks()[0]
    assert truth.ignore is not None
    assert int(truth.ignore.sum()) == 25
    assert int(truth.mask.sum()) == 20 * 16 - 25
    assert int(b.masks()[0].mask.sum()) == 20 * 16
    assert a.images()[0].shape == (24, 32, 3)
    assert found.notes == ("1 files have no target polygon and are left out: c.json",)
    kept = reasonseg.load(tmp_path / "val", missing="empty", all_texts="yes")
    assert len(kept) == 6
    assert [sample.id for sample in kept][:2] == ["a", "a#1"]
    assert not list(kept)[-1].masks()[0].mask.any()


def test_reasonseg_scores_leave_ignored_pixels_out(tmp_path: Path) -> None:
    found = reasonseg.load(reason_folder(tmp_path / "val"))
    masks = {sample.id: sample.masks()[0].mask for sample in found}
    row = score(found, {"model": [predict(name, [mask]) for name, mask in masks.items()]}, resamples=0).row("model")
    assert row.value("giou") == 1.0
    value = row.value("seg-zero:giou")
    assert value is not None
    assert value < 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "a.json: not JSON"),
        ('{"text": ["x"]}', "text and shapes are expected"),
        ('{"text": ["x"], "shapes": [{"label": "target", "points": [[1]]}]}', "a.json, shapes[0]: points are pairs"),
        ('{"text": ["x"], "shapes": [{"label": "target", "points": []}]}', "without points"),
    ],
)
def test_reasonseg_errors_name_file_and_record(tmp_path: Path, text: str, said: str) -> None:
    folder = reason_folder(tmp_path / "val")
    (folder / "a.json").write_text(text)
    with pytest.raises(TerminalError) as caught:
        reasonseg.load(folder)
    assert said in str(caught.value)
    with pytest.raises(ConfigError, match="no image with a JSON"):
        reasonseg.load(tmp_path / "nothing")


# ---------------------------------------------------------------- refCOCO and gRefCOCO


def instances() -> dict[str, Any]:
    rle = coco.encode(np.asfortranarray(box_mask(40, 50, (0, 0, 10, 40)).astype(np.uint8)))
    plain = {"size": [40, 50], "counts": [400, 400, 1200]}
    polygon = [[10.0, 10.0, 30.0, 10.0, 30.0, 20.0, 10.0, 20.0]]
    shapes: list[Any] = [polygon, plain, {"size": [40, 50], "counts": rle["counts"].decode()}]
    return {
        "images": [{"id": 7, "height": 40, "width": 50, "file_name": "COCO_7.jpg"}],
        "annotations": [
            {"id": 100 + place, "image_id": 7, "category_id": 1, "iscrowd": 0, "segmentation": shape}
            for place, shape in enumerate(shapes)
        ],
        "categories": [{"id": 1, "name": "thing"}],
    }


def refs(ann_ids: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "ref_id": 10 + place,
            "ann_id": ann_id,
            "category_id": 1,
            "image_id": 7,
            "file_name": "COCO_7_wrong.jpg",
            "split": "val" if place < 3 else "testA",
            "sent_ids": [2 * place, 2 * place + 1],
            "sentences": [
                {"raw": f"Thing {n}", "sent": f"thing {n}", "sent_id": 2 * place + n, "tokens": ["thing", str(n)]}
                for n in range(2)
            ],
        }
        for place, ann_id in enumerate(ann_ids)
    ]


def coco_folder(folder: Path, found: Any, name: str) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "COCO_7.jpg").write_bytes(encode_jpeg(picture(40, 50, seed=3)))
    (folder / "instances.json").write_text(json.dumps(instances()))
    if name.endswith(".p"):
        # the published files are protocol 0 of Python 2
        (folder / name).write_bytes(pickle.dumps(found, protocol=0))
    else:
        (folder / name).write_text(json.dumps(found))
    return folder


@pytest.mark.parametrize("name", ["refs(unc).p", "refs(unc).json"])
def test_refcoco(tmp_path: Path, name: str) -> None:
    found = open_benchmark(f"refcoco:{coco_folder(tmp_path / 'refcoco', refs([100, 101, 102, 100]), name)}?split=val")
    samples = list(found)
    assert len(samples) == len(found) == 6
    assert [sample.question for sample in samples[:2]] == ["thing 0", "thing 1"]
    polygon, plain, packed = (samples[place].masks()[0].mask for place in (0, 2, 4))
    assert int(polygon.sum()) == 200
    assert np.array_equal(plain, box_mask(40, 50, (10, 0, 20, 40)))
    assert np.array_equal(packed, box_mask(40, 50, (0, 0, 10, 40)))
    assert samples[0].images()[0].shape == (40, 50, 3)
    assert len(refcoco.load(tmp_path / "refcoco", split="testA", sentences="first")) == 1
    with pytest.raises(ConfigError, match="it has testA, val"):
        refcoco.load(tmp_path / "refcoco", split="test")


def test_grefcoco_has_several_and_no_targets(tmp_path: Path) -> None:
    folder = coco_folder(tmp_path / "grefcoco", refs([[100, 102], [-1], [101]]), "grefs(unc).json")
    samples = list(refcoco.load(folder))
    several, none, one = samples[0], samples[2], samples[4]
    assert [sample.tags["targets"] for sample in (several, none, one)] == ["several", "none", "one"]
    assert int(several.masks()[0].mask.sum()) == 200 + 400
    assert not none.masks()[0].mask.any()
    empty = np.zeros((40, 50), dtype=np.bool_)
    report = score(
        refcoco.load(folder),
        {"model": [predict(sample.id, [empty]) for sample in samples]},
        convention="gres",
        resamples=0,
    )
    row = report.row("model")
    assert (row.value("giou"), row.value("n_acc"), row.value("t_acc")) == (pytest.approx(1 / 3), 1.0, 0.0)
    assert row.value("targeted_giou") == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found[1].update(ann_id=999), "has no annotation 999"),
        (lambda found: found[1].pop("sentences"), "reference 1"),
        (lambda found: found[1].update(ann_id=[100, -1]), "reference 1"),
        (lambda found: found[0].update(image_id=8), "has no image 8"),
    ],
)
def test_refcoco_errors_name_file_and_record(tmp_path: Path, change: Any, said: str) -> None:
    found = refs([100, 101])
    change(found)
    folder = coco_folder(tmp_path / "refcoco", found, "refs(unc).json")
    with pytest.raises(TerminalError) as caught:
        refcoco.load(folder)
    assert said in str(caught.value)
    assert "refs(unc).json" in str(caught.value)


class Hostile:
    """An object whose unpickling would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.path, "it ran"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_not_run(tmp_path: Path, protocol: int) -> None:
    trap, file = tmp_path / "trap", tmp_path / "refs(unc).p"
    file.write_bytes(pickle.dumps([{"ref_id": 1}, Hostile(trap)], protocol=protocol))
    with pytest.raises(TerminalError, match="Nothing in it was run"):
        read_plain_pickle(file)
    assert not trap.exists()
    pickle.loads(file.read_bytes())
    assert trap.exists(), "the trap works"


def test_plain_pickles_are_read_and_broken_ones_are_not(tmp_path: Path) -> None:
    file = tmp_path / "x.p"
    value = [{"a": 1, "b": ["ü", 2.5, None, True], "c": (1, 2)}]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps(value, protocol=protocol))
        assert read_plain_pickle(file) == value
    file.write_bytes(b"(dp0\nS'a'\np1\nI1\ns.")
    assert read_plain_pickle(file) == {"a": 1}
    file.write_bytes(b"\x80\x04garbage")
    with pytest.raises(TerminalError, match=r"x\.p is not read"):
        read_plain_pickle(file)


# ---------------------------------------------------------------- Seg-Zero

NEW = '[{"bbox_2d": [84, 42, 420, 210], "point_2d": [210, 105]}, {"bbox_2d": [0, 0, 840, 840], "point_2d": [1, 2]}]'
OLD = "<box>(84,42),(420,210)</box><points>(210,105),(300,110)</points>"


def test_seg_zero_solutions_of_both_forms() -> None:
    new = segzero.parse_solution(NEW, width=1680, height=420)
    assert (new[0].box.x1, new[0].box.y1, new[0].box.x2, new[0].box.y2) == (168, 21, 840, 105)
    assert new[0].points == ((420, 52.5),)
    assert (new[1].box.x2, new[1].box.y2) == (1680, 420)
    old = segzero.parse_solution(OLD, width=1680, height=420)
    assert old[0].box == new[0].box
    assert old[0].points == ((420, 52.5), (600, 55))
    for text in ("think about it", "<box>(1,2),(3,4)</box>", '[{"bbox_2d": [1, 2, 3]}]', "[1"):
        with pytest.raises((ValueError, KeyError)):
            segzero.parse_solution(text, width=10, height=10)


def test_seg_zero_training_set_has_targets_and_no_masks(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{n}", "problem": "'a' and 'b'", "solution": text, "image": None, "img_height": 420, "img_width": 840}
        for n, text in enumerate((NEW, OLD))
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    first, second = segzero.read_targets(tmp_path)
    assert (len(first.targets), len(second.targets)) == (2, 1)
    with pytest.raises(ConfigError, match="boxes and points only"):
        segzero.load(tmp_path)
    rows[1]["solution"] = "no"
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    with pytest.raises(TerminalError, match=r"train\.parquet, row 1 \(r1\)"):
        list(segzero.read_targets(tmp_path))


def test_seg_zero_reasonseg(tmp_path: Path) -> None:
    mask = box_mask(20, 30, (5, 5, 15, 10))
    row = {
        "image": {"bytes": encode_jpeg(picture(20, 30, seed=1)), "path": None},
        "mask": mask.tolist(),
        "text": "the lid",
        "image_id": "1",
        "ann_id": "2",
        "img_height": 20,
        "img_width": 30,
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "val.parquet")
    (sample,) = open_benchmark(f"seg-zero:{tmp_path / 'val.parquet'}")
    assert np.array_equal(sample.masks()[0].mask, mask)
    assert sample.images()[0].shape == (20, 30, 3)
    pq.write_table(pa.Table.from_pylist([{**row, "img_height": 21}]), tmp_path / "val.parquet")
    with pytest.raises(TerminalError, match=r"val\.parquet, row 0 \(1-2\): the mask is \(20, 30\)"):
        next(iter(segzero.load(tmp_path / "val.parquet"))).masks()


# ---------------------------------------------------------------- NEST+


def test_nest_plus_is_declared_and_repeatable(tmp_path: Path) -> None:
    write_snapshot(tmp_path / WINDOW, rows=8)
    reason_folder(tmp_path / "reason" / "val")
    text = f"""
    name = "NEST+"
    seed = 3
    [[part]]
    name = "NEST"
    source = "{WINDOW}"
    count = 5
    [[part]]
    name = "ReasonSeg"
    source = "reasonseg:reason?split=val"
    count = 2
    """
    (tmp_path / "mix.toml").write_text(text)
    found = open_benchmark(f"nest-plus:{tmp_path / 'mix.toml'}")
    ids = [sample.id for sample in found]
    assert len(ids) == len(set(ids)) == len(found) == 7
    assert ids == [sample.id for sample in nest_plus.load(tmp_path / "mix.toml")]
    (tmp_path / "other.toml").write_text(text.replace("seed = 3", "seed = 4"))
    other = nest_plus.load(tmp_path / "other.toml")
    assert [sample.id for sample in other] != ids
    assert other.digest != found.digest
    masks = {sample.id: sample.masks()[0].mask for sample in found}
    report = score(found, {"model": [predict(name, [mask]) for name, mask in masks.items()]}, resamples=0)
    assert report.row("model", split="source_set", part="NEST").samples == 5
    assert any("5 of NEST_261109_261115 as NEST" in note for note in report.notes)
    (tmp_path / "mix.toml").write_text(text.replace("count = 5", "count = 9"))
    with pytest.raises(ConfigError, match="9 samples of 8"):
        nest_plus.load(tmp_path / "mix.toml")


def test_adding_a_part_changes_no_other() -> None:
    def bench(name: str) -> Benchmark:
        mask = TruthMask(box_mask(4, 4, (0, 0, 2, 2)))
        return benchmark_of({f"{name}{n}": [mask] for n in range(20)}, name=name)

    one = nest_plus.Part(name="A", source="a", count=6)
    two = nest_plus.Part(name="B", source="b", count=6)
    alone = nest_plus.mix(nest_plus.Mixture(part=(one,)), [bench("a")])
    both = nest_plus.mix(nest_plus.Mixture(part=(one, two)), [bench("a"), bench("b")])
    assert [sample.id for sample in both][:6] == [sample.id for sample in alone]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=3&foo=1", "has no option 'foo': there are "),
        ("limit=0", "limit=0 leaves no sample"),
        ("limit=-1", "limit is a whole number, got '-1'"),
        ("limit=x", "limit is a whole number, got 'x'"),
        ("limit=" + "9" * 5000, "limit is a whole number"),
        ("source=x", "has no option 'source'"),
    ],
)
def test_options_that_do_not_fit_are_told_in_one_sentence(tmp_path: Path, query: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as found:
        open_benchmark(f"{tmp_path}?{query}")
    assert "()" not in str(found.value)


def test_no_name_and_a_seed_that_is_no_number() -> None:
    for text in ("", "  "):
        with pytest.raises(ConfigError, match="no benchmark is named"):
            open_benchmark(text)
    line = "nest1|data=NEST_261116_261122@r1|sha256=3f9a|convention=lisa|unit=pair|seed="
    assert parse(f"{line}4").seed == 4
    for seed in ("x", "-1", "", "9" * 5000):
        with pytest.raises(ConfigError, match="its seed is '"):
            parse(line + seed)

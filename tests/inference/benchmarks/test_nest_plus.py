"""NEST+: a mixture that is declared, repeatable, and whose options are told in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.evaluation import WINDOW, benchmark_of, box_mask, predict, write_snapshot
from support.reasonseg import reason_folder

from engine.core.errors import ConfigError
from inference.benchmarks import nest_plus
from inference.benchmarks.base import Benchmark, TruthMask
from inference.benchmarks.registry import open_benchmark
from inference.metrics.score import score
from inference.metrics.scorestring import parse


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

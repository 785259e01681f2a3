"""Verdicts: the file, who wins, the interval, agreement, and what becomes of them."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.snapshots import records, snapshot

from engine.core.errors import ConfigError
from engine.core.store import BlobStore
from engine.snapshot.amend import amend
from engine.snapshot.proportion import agreement, cohens_kappa, interval
from engine.snapshot.reviewed import changes_of, draw, masks_digest, wrong_rows
from engine.snapshot.revise import read_rows
from engine.snapshot.samples import join, sample_id
from engine.snapshot.verdicts import Verdict, all_of, append, decided, file_of, read, standing, summarise
from engine.snapshot.verify import verify

BASE = Verdict(
    snapshot="NEST_261123_261129",
    revision="r1",
    digest="d1",
    rows=2000,
    sample_id="x",
    stratum="random",
    verdict="right",
    reviewer="ada",
)


def _said(**changes: object) -> Verdict:
    return BASE.model_copy(update=changes)


def test_none_wrong_of_150_is_at_most_two_percent() -> None:
    low, high = interval(0, 150)
    assert low == 0.0
    assert round(100 * high, 1) == 2.0


@pytest.mark.parametrize(
    ("wrong", "judged", "low", "high"),
    # Clopper and Pearson's limits as published tables give them
    [(1, 10, 0.0025, 0.4450), (5, 10, 0.1871, 0.8129), (2, 150, 0.0016, 0.0473), (10, 100, 0.0490, 0.1762)],
)
def test_the_interval_is_clopper_and_pearsons(wrong: int, judged: int, low: float, high: float) -> None:
    found = interval(wrong, judged)
    assert found == pytest.approx((low, high), abs=6e-5)


def test_the_interval_covers() -> None:
    rng = np.random.default_rng(3)
    for share in (0.005, 0.02, 0.1):
        hits = [interval(int(count), 150) for count in rng.binomial(150, share, size=400)]
        assert np.mean([low <= share <= high for low, high in hits]) >= 0.93


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share(counts: tuple[int, int]) -> None:
    wrong, judged = counts
    low, high = interval(wrong, judged)
    assert 0.0 <= low <= wrong / judged <= high <= 1.0
    assert not math.isnan(low + high)


def test_kappa() -> None:
    # the worked example of the statistic: 20 and 15 agreed, 5 and 10 not
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)
    assert cohens_kappa([("y", "y")]) is None
    shared, same, kappa = agreement({"a": {"1": "y", "2": "n"}, "b": {"1": "y", "2": "n", "3": "y"}, "c": {}})
    assert (shared, same, kappa) == (2, 1.0, 1.0)


def test_a_file_keeps_every_word_and_the_last_one_stands(tmp_path: Path) -> None:
    path = file_of(tmp_path, "NEST_x", "ada")
    for verdict in ("wrong_answer", "undo", "right"):
        append(path, _said(verdict=verdict))
    append(path, _said(sample_id="y", verdict="bad_mask"))
    assert len(path.read_text().splitlines()) == 4
    assert {name: said.verdict for name, said in standing(read(path)).items()} == {"x": "right", "y": "bad_mask"}


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_a_line_that_a_crash_cut_short_is_absent_and_swallows_nothing(tmp_path: Path, cut: int) -> None:
    path = file_of(tmp_path, "NEST_x", "ada")
    append(path, _said())
    append(path, _said(sample_id="torn"))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[: first + cut])
    assert [v.sample_id for v in read(path)] == ["x"]
    append(path, _said(sample_id="z"))
    assert [v.sample_id for v in read(path)] == ["x", "z"]


def test_a_foreign_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ada.jsonl"
    path.write_text('{"hello": 1}\n')
    with pytest.raises(ConfigError, match="line 1: not a verdict"):
        list(read(path))
    with pytest.raises(ConfigError, match="not a reviewer's name"):
        file_of(tmp_path, "NEST_x", "../ada")


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["right"], "right"),
        (["skip", "skip"], "skip"),
        (["right", "bad_mask"], "bad_mask"),
        (["right", "right", "bad_mask"], "right"),
        (["bad_mask", "wrong_answer", "right"], "wrong_answer"),
        (["bad_mask", "bad_mask", "private_person"], "bad_mask"),
        (["skip", "right"], "right"),
    ],
)
def test_what_several_people_say(words: list[str], result: str) -> None:
    assert decided([_said(verdict=word, reviewer=str(n)) for n, word in enumerate(words)]) == result


def test_only_the_random_rows_make_the_estimate() -> None:
    said = [_said(sample_id=f"r{n}", verdict="right") for n in range(148)]
    said += [_said(sample_id="w1", verdict="wrong_answer"), _said(sample_id="w2", verdict="bad_mask")]
    said += [_said(sample_id=f"m{n}", verdict="bad_mask", stratum="lowest_margin") for n in range(9)]
    said += [_said(sample_id="s", verdict="skip")]
    review = summarise({"ada": said})
    assert review is not None
    assert (review.random.judged, review.random.wrong, review.random.skipped) == (150, 2, 1)
    assert review.sentence() == "2 of 150 rows drawn at random were wrong: 1.3 % (95 % interval 0.2 to 4.7 %)"
    assert review.measured()["What was wrong"] == "1 bad mask, 1 wrong answer"
    assert review.measured()["Rows of the lowest margins"].startswith("9 of 9")
    none = summarise({"ada": [*said[:148], _said(sample_id="a"), _said(sample_id="b")]})
    assert none is not None
    assert none.sentence() == "0 of 150 rows drawn at random were wrong: at most 2.0 % (95 % bound)"


def test_agreement_of_two_reviewers_stands_on_the_card() -> None:
    ada = [_said(sample_id=f"r{n}", verdict="bad_mask" if n < 2 else "right") for n in range(10)]
    bo = [_said(sample_id=f"r{n}", verdict="bad_mask" if n < 1 else "right", reviewer="bo") for n in range(10)]
    review = summarise({"ada": ada, "bo": bo})
    assert review is not None
    assert review.shared == 10
    assert review.same == 0.9
    assert review.random.wrong == 2  # half of those who judged say so
    assert "90 % of 10 pairs, Cohen's kappa 0.62" in review.measured()["Reviewers"]


def test_the_latest_reviewed_revision_counts() -> None:
    old = [_said(sample_id=f"r{n}", verdict="bad_mask") for n in range(3)]
    new = [_said(sample_id="r9", revision="r2", digest="d2")]
    review = summarise({"ada": old + new})
    assert review is not None
    assert (review.revision, review.random.wrong) == ("r2", 0)
    assert summarise({"ada": old + new}, digest="d1").random.wrong == 3  # type: ignore[union-attr]
    assert summarise({}) is None


def test_the_sample_is_drawn_by_the_digest_and_the_strata_are_apart(tmp_path: Path) -> None:
    manifest = snapshot(tmp_path / "NEST_261123_261129", 12)
    folder = tmp_path / "NEST_261123_261129"
    drawn = draw(folder, manifest, random_rows=7, lowest_margins=3)
    assert drawn == draw(folder, manifest, random_rows=7, lowest_margins=3)
    assert len(set(drawn.random)) == 7
    assert len(set(drawn.lowest_margins)) == 3
    assert not set(drawn.random) & set(drawn.lowest_margins)
    longer = draw(folder, manifest, random_rows=9, lowest_margins=0)
    assert longer.random[:7] == drawn.random
    other = draw(folder, manifest.model_copy(update={"digest": "0"}), random_rows=7, lowest_margins=3)
    assert other.random != drawn.random
    assert len(draw(folder, manifest, random_rows=150, lowest_margins=50).random) == 12


def test_verdicts_become_a_revision_and_the_cards_figures(tmp_path: Path) -> None:
    folder = tmp_path / "NEST_261123_261129"
    manifest = snapshot(folder, 6)
    rows = list(read_rows(folder))
    words = ["right", "wrong_answer", "wrong_answer", "bad_mask", "private_person", "skip"]
    answers = [None, "Grace Hopper", None, None, None, None]
    path = file_of(tmp_path, manifest.name, "ada")
    for row, verdict, answer in zip(rows, words, answers, strict=True):
        said = {"digest": manifest.digest, "rows": 6, "sample_id": row.id, "verdict": verdict, "answer": answer}
        append(path, _said(**said))
    verdicts = all_of(tmp_path, manifest.name)
    review = summarise(verdicts)
    assert review is not None
    changes = changes_of(verdicts, digest=manifest.digest)
    new = amend(folder, tmp_path / "next", changes=changes, measured=review.measured())
    assert new.revision == "r2"
    kept = {row.id: row for row in read_rows(tmp_path / "next")}
    assert set(kept) == {rows[0].id, rows[1].id, rows[5].id}
    assert kept[rows[1].id].default["answer"] == "Grace Hopper"
    card = (tmp_path / "next" / "README.md").read_text()
    assert "4 of 5 rows drawn at random were wrong: 80.0 % (95 % interval 28.4 to 99.5 %)" in card
    assert "Not reviewed" not in card
    assert "Not reviewed" in (folder / "README.md").read_text()
    assert {item.change for item in new.errata} == {"answer", "removed"}
    assert verify(tmp_path / "next") == []


def test_a_review_without_faults_is_a_revision_of_the_card_alone(tmp_path: Path) -> None:
    folder = tmp_path / "NEST_261123_261129"
    old = snapshot(folder, 3)
    new = amend(folder, tmp_path / "next", changes=[], measured={"Error people found": "0 of 3"})
    assert [(item.sample_id, item.change) for item in new.errata] == [("", "card")]
    data = [item for item in old.files if item.path.startswith("data/")]
    assert [item for item in new.files if item.path.startswith("data/")] == data
    assert verify(tmp_path / "next") == []
    with pytest.raises(ConfigError, match="nothing to amend"):
        amend(folder, tmp_path / "more", changes=[])


def test_a_rebuild_leaves_out_what_was_found_wrong_unless_the_mask_is_another(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    found = records(4, blobs)
    folder = tmp_path / "NEST_261123_261129"
    manifest = snapshot(folder, 4)
    masks = {r.id: masks_digest(r.provenance["bindings"], r.provenance["gates"]) for r in read_rows(folder)}
    ids = [sample_id(article, question) for article, question in zip(found[0], found[1], strict=True)]
    assert set(ids) == set(masks)
    words = ["private_person", "bad_mask", "wrong_entity", "right"]
    said = [
        _said(digest=manifest.digest, sample_id=name, verdict=word, masks=masks[name])
        for name, word in zip(ids, words, strict=True)
    ]
    wrong = wrong_rows({"ada": said}, *found)
    assert set(wrong) == set(ids[:3])
    again = [item.id for item in join(*found, wrong=wrong) if hasattr(item, "annotation")]
    assert again == [ids[3]]
    image = found[2][1].images[0]
    other = image.model_copy(update={"binding": image.binding.model_copy(update={"margin": 0.5})})
    annotations = [*found[2]]
    annotations[1] = annotations[1].model_copy(update={"images": (other,)})
    assert set(wrong_rows({"ada": said}, found[0], found[1], annotations)) == {ids[0], ids[2]}

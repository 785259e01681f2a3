"""What may be quoted: whole scores and no trials; and what commands say where there is nothing to show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import snapshots
from support.desk import NAME, Desk
from support.hub import LoopbackHub

from engine.core.config import load_config
from engine.core.schema import Prediction, Rle
from engine.snapshot.revise import read_rows
from flows.ranking import is_trial, rank
from flows.stages import score as stage

ROWS = 5
SHORT = NAME.removeprefix("NEST_")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A snapshot of five rows, predictions of all of them (whole.jsonl) and of one (trial.jsonl)."""
    with LoopbackHub() as hub:
        found = Desk(tmp_path, hub)
        snapshots.snapshot(found.snapshot, ROWS)
        lines = [json.dumps({"id": row.id, "masks": [row.provenance["masks"][0]]}) for row in read_rows(found.snapshot)]
        (tmp_path / "whole.jsonl").write_text("\n".join(lines))
        (tmp_path / "trial.jsonl").write_text(lines[0])
        (tmp_path / "wrong.jsonl").write_text(lines[0].replace('"id": "', '"id": "x'))
        yield found


def _scored(desk: Desk, dataset: str, *words: str) -> dict[str, int]:
    """Units of each segmenter in the report that a command made or found."""
    told = json.loads(desk.nest("score", dataset, *words, "--json").stdout)
    return {row["segmenter"]: row["units"] for row in told["scores"] if row["kind"] == "segmenter"}


def test_the_first_samples_never_pass_for_the_whole(desk: Desk) -> None:
    assert _scored(desk, f"{NAME}?limit=2", "-s", "portable") == {"portable": 2}
    assert _scored(desk, NAME, "-s", "portable") == {"portable": ROWS}
    assert _scored(desk, f"{NAME}?limit=2", "-s", "portable") == {"portable": 2}
    strings = {json.loads(path.read_text())["score_string"] for path in _reports(desk)}
    assert len(strings) == 2
    refused = desk.nest("cite", f"{NAME}?limit=2", code=4)
    assert f"{NAME}.first2, a part of {NAME}" in refused.stderr
    assert f"{ROWS} samples with {ROWS} (image, mask) pairs" in desk.nest("cite", NAME).stdout
    told = json.loads(desk.nest("report", "--all", "--json").stdout)
    assert told["windows"] == [SHORT]
    # a limit that leaves nothing out is the whole
    assert _scored(desk, f"{NAME}?limit=50", "-s", "portable") == {"portable": ROWS}
    assert len(_reports(desk)) == 2


def test_predictions_of_a_part_under_the_key_of_the_whole_are_made_anew(desk: Desk) -> None:
    """What an earlier version left behind: two of five samples, finished."""
    _scored(desk, NAME, "-s", "portable")
    (manifest,) = (desk.folder / "home" / "predictions").glob("*/*/*/manifest.json")
    told = json.loads(manifest.read_text())
    told["funnel"]["found"] = 2
    manifest.write_text(json.dumps(told))
    data = manifest.with_name("part-00000.jsonl")
    whole = data.read_bytes()
    data.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    assert _scored(desk, NAME, "-s", "portable") == {"portable": ROWS}
    assert data.read_bytes() == whole


def test_the_whole_is_cited_whatever_was_scored_last(desk: Desk) -> None:
    desk.nest("score", NAME, "--predictions", "trial.jsonl")
    refused = desk.nest("cite", NAME, code=4)
    assert f"files:trial.jsonl says nothing of {ROWS - 1} of {ROWS} pairs" in refused.stderr
    desk.nest("score", NAME, "--predictions", "whole.jsonl")
    desk.nest("score", NAME, "--predictions", "trial.jsonl")
    cited = desk.nest("cite", NAME).stdout
    assert "files:whole.jsonl" in cited
    assert "files:trial.jsonl" not in cited
    assert "files:whole.jsonl" in desk.nest("report", NAME).stdout
    (string,) = {json.loads(path.read_text())["score_string"] for path in _reports(desk)}
    assert desk.nest("replay", string).stdout.startswith("files:whole.jsonl: gIoU 100")
    assert "whole.jsonl 100.0" in desk.nest("status").stdout


def test_ranks() -> None:
    assert is_trial(2, 10)
    assert not is_trial(1, 10)
    whole, trial, two, nearly = [(0, 10)], [(9, 10)], [(0, 10), (0, 10)], [(0, 10), (1, 10), (0, 10)]
    assert sorted([two, trial, nearly, whole], key=rank) == [trial, whole, two, nearly]


def test_predictions_that_do_not_fit_leave_nothing_behind(desk: Desk) -> None:
    assert "wrong.jsonl" in desk.nest("score", NAME, "--predictions", "wrong.jsonl", code=2).stderr
    assert not (desk.folder / "home" / "predictions").exists()
    # what earlier versions left
    stale = desk.folder / "home" / "predictions" / NAME / "files+old.jsonl"
    stale.mkdir(parents=True)
    (stale / ".0123.lock").touch()
    desk.nest("score", NAME, "--predictions", "whole.jsonl")
    assert json.loads(desk.nest("gc", "--dry-run", "--json").stdout)["rubbish"] == 1
    assert stale.is_dir()
    desk.nest("gc")
    assert sorted(path.name for path in stale.parent.iterdir()) == ["files+whole.jsonl"]


def test_where_there_is_no_snapshot_the_command_that_makes_one_is_named(desk: Desk) -> None:
    for words in (("report",), ("cite",), ("score",), ("novelty", "--model", "m")):
        told = desk.nest(words[0], "2026-W40", *words[1:], code=2).stderr
        assert "there is no snapshot of 260928_261004" in told
        assert "nest refresh --window 260928_261004" in told
    # a configuration with a limit means the pilot; where there is only the whole, that is meant
    limited = {"NEST__COLLECT__LIMIT": "9"}
    assert "--window 260928_261004 --limit 9'" in desk.nest("cite", "2026-W40", code=2, **limited).stderr
    assert "to do" in desk.nest("score", NAME, "-s", "portable", "--dry-run", **limited).stderr


def test_a_replay_says_that_a_takedown_removed_the_report(desk: Desk) -> None:
    desk.nest("score", NAME, "--predictions", "whole.jsonl")
    (path,) = _reports(desk)
    string = json.loads(path.read_text())["score_string"]
    name = next(read_rows(desk.snapshot)).id
    desk.nest("takedown", "--id", name, "--local-only", code=3)
    assert _reports(desk) == []
    told = desk.nest("replay", string, code=2).stderr
    assert f"the reports of {NAME} were removed here by the takedown of 20" in told
    assert "--published OWNER/NAME" in told
    # another string is simply not known
    assert "no published run of" in desk.nest("replay", string.replace(NAME, "NEST_250101_250107"), code=2).stderr


def test_one_file_is_not_two_configurations(desk: Desk) -> None:
    (desk.folder / "a.toml").write_text("")
    (desk.folder / "nest.toml").write_text("")
    both = desk.nest("compare", SHORT, "--config", "a.toml", "./a.toml", code=2).stderr
    assert "a.toml is both configurations" in both
    assert "nest.toml is both configurations" in desk.nest("compare", SHORT, "nest.toml", code=2).stderr


def test_addresses_that_are_none_are_told_before_anything_runs(desk: Desk) -> None:
    for name, said in (
        ("remote:foo", "write 'remote:http://host:port'"),
        ("remote:http://", "write 'remote:http://host:port'"),
        ("rose:remote:foo", "'foo' is no address"),
        ("remote", "set [score] endpoints.remote"),
        ("rose:seem", "set [score] endpoints.seem"),
    ):
        assert said in desk.nest("score", NAME, "-s", name, "--dry-run", code=2).stderr, name
    env = {"NEST__SCORE__ENDPOINTS": json.dumps({"seem": "gpu-box"})}
    assert "'gpu-box' is no address" in desk.nest("score", NAME, "-s", "seem", "--dry-run", code=2, **env).stderr
    assert "to do" in desk.nest("score", NAME, "-s", "remote:http://127.0.0.1:9/x", "--dry-run").stderr


def test_a_name_with_slashes_is_carried_to_the_next_revision(desk: Desk) -> None:
    name = "remote:http://127.0.0.1:9/models/a+b"
    config = load_config(None, environ={"NEST_HOME": str(desk.folder / "home")}, overrides={"score.segmenters": [name]})
    (place,) = stage.places(stage.task_for(NAME, config)).values()
    found = [
        Prediction(sample_id=row.id, segmenter=name, masks=(Rle.model_validate(row.provenance["masks"][0]),))
        for row in read_rows(desk.snapshot)
    ]
    place.commit(found, [], stage="predict", found=ROWS)
    first, *_ = read_rows(desk.snapshot)
    done = desk.nest("amend", NAME, first.id, "--answer", "Somebody Else", "--because", "the caption names her")
    assert "the predictions of 1 segmenters count for r2 too" in done.stderr
    assert f"{name}: stays at 1" in done.stderr
    # a second revision carries what was carried
    again = desk.nest("amend", NAME, first.id, "--answer", "Another One", "--because", "the caption names her")
    assert "the predictions of 1 segmenters count for r3 too" in again.stderr


def _reports(desk: Desk) -> list[Path]:
    return sorted((desk.folder / "home" / "reports").glob("*/*/report.json"))

"""`nest harvest`: one bad source stops no other and is named; a round that no source answered is no success."""

import json
from pathlib import Path

import pytest
from support.week import Week

from engine.core.errors import TransientError
from flows.sample.config import sample_overrides

#: Nobody listens there.
GONE = [{"name": name, "type": "feed", "url": f"http://127.0.0.1:9/{name}.xml"} for name in ("gone", "away")]


def test_a_round_without_any_answer_leaves_work(tmp_path: Path) -> None:
    with Week(tmp_path) as week:
        told = sample_overrides(week.publishers.port)
        good = told["source"]
        fast = {"collect.retries": 0, "collect.allow_hosts": ["127.0.0.1", *told["collect"]["allow_hosts"]]}
        week.write_config({**fast, "source": [*GONE, *(row for row in good if row["name"] == "herald")]})
        done = week.nest("harvest")
        assert "gone: source_unreachable" in done.stderr
        assert "next: nest status" in done.stderr

        week.write_config({**fast, "source": GONE})
        done = week.nest("harvest", "--json", code=3)
        assert {row["source"] for row in json.loads(done.stdout)["sources"]} == {"gone", "away"}
        (said,) = done.stderr.strip().splitlines()
        assert said.startswith("nest: no source could be asked: gone (source_unreachable")
        assert "away (source_unreachable" in said
        assert "nest sources check" in said

        from flows.harvest import harvest

        with pytest.raises(TransientError, match="no source could be asked: gone"):
            harvest.fn(config=str(tmp_path / "nest.toml"))

        week.write_config({**fast, "source": [{**row, "paused": True} for row in GONE]})
        assert "0 new links" in week.nest("harvest").stderr

"""`[score] judge_model`: answers that match no alias are put to a model, once, and its verdicts stand apart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.desk import NAME, Desk, desk_with_predictions
from support.llm_server import LlmServer, Scripted, completion

from engine.snapshot.revise import Row

MODEL = "judge-1"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A snapshot of five rows, and predictions that answer two of them rightly, two in other words, one not at all."""

    def predicted(place: int, row: Row) -> dict[str, Any]:
        name = row.default["answer"]
        answer = {0: name, 1: name, 2: f"a certain {name}", 3: "somebody else"}.get(place)
        return {"masks": row.provenance["masks"]} | ({"answer": answer} if answer else {})

    with desk_with_predictions(tmp_path, predicted) as found:
        yield found


def judges(body: Mapping[str, Any]) -> Scripted:
    """Takes "a certain NAME" for NAME, and nothing else."""
    said = body["messages"][-1]["content"]
    assert "Reference: " in said
    return completion(json.dumps({"same": "Answer: a certain " in said}), tokens=(40, 5))


def _report(desk: Desk) -> dict[str, Any]:
    (path,) = (desk.folder / "home" / "reports").glob("*/*/report.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _figures(report: Mapping[str, Any]) -> dict[str, float]:
    row = next(row for row in report["rows"] if row["kind"] == "segmenter" and not row["split"])
    return {name: row["figures"][name]["value"] for name in ("accuracy", "judged") if name in row["figures"]}


def test_a_judge_is_asked_once_paid_and_counted_apart(desk: Desk) -> None:
    score = ("score", NAME, "--predictions", "mine.jsonl")
    with LlmServer(reply=judges) as server:
        env = {
            "NEST__SCORE__JUDGE_MODEL": MODEL,
            "NEST__LLM__BASE_URL": server.url,
            "NEST__LLM__PRICES": json.dumps({MODEL: [1.0, 2.0]}),
        }
        refused = desk.nest(*score, code=2, **env)
        assert "OPENAI_API_KEY" in refused.stderr
        desk.nest(*score, OPENAI_API_KEY=server.key, **env)
        report = _report(desk)
        assert _figures(report) == {"accuracy": 0.5, "judged": 0.75}
        assert report["answers"][0]["judged"].count(None) == 1
        assert f"files:mine.jsonl: {MODEL} judged 2 answers that match no alias" in report["notes"]
        asked = server.answered
        assert asked == 2
        (ledger,) = (desk.folder / "home" / "ledger").glob("*.jsonl")
        lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
        assert [(line["purpose"], line["model"], line["tokens_in"]) for line in lines] == [("judge", MODEL, 40)] * 2
        assert sum(line["usd"] for line in lines) == pytest.approx(2 * (40 + 2 * 5) / 1e6)
        # made again, nobody is asked: the replies are kept
        (path,) = (desk.folder / "home" / "reports").glob("*/*/report.json")
        before = path.read_bytes()
        path.unlink()
        desk.nest(*score, OPENAI_API_KEY=server.key, **env)
        assert server.answered == asked
        assert path.read_bytes() == before
    shutil.rmtree(path.parent)
    desk.nest(*score, "--offline", **env)
    assert path.read_bytes() == before
    shown = desk.nest("cite", str(path)).stdout
    string = json.loads(before)["score_string"]
    assert string in shown
    assert "the same digits" in desk.nest("replay", string).stderr


def test_no_judge_no_figure_and_the_key_of_old_reports(desk: Desk) -> None:
    desk.nest("score", NAME, "--predictions", "mine.jsonl")
    report = _report(desk)
    assert _figures(report) == {"accuracy": 0.5}
    assert report["answers"][0]["judged"] == []

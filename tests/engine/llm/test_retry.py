"""What is done after a failed answer, case by case, and the laws of waiting."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.llm.retry import advise, backoff_s, duration_s, wait_of

CASES = Path(__file__).parents[2] / "data" / "cases" / "32-retry-headers"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())
RESPONSES = {item["id"]: item for item in json.loads((CASES / "responses.json").read_text())}
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_case(name: str) -> None:
    told, expected = RESPONSES[name], EXPECTED[name]
    advice = advise(told["status"], told["headers"], json.dumps(told["body"]), now=NOW)
    assert advice.action == expected["action"]
    if expected["seconds"] == "backoff":
        assert advice.seconds is None
    elif advice.action in ("retry", "wait_own"):
        assert advice.seconds == pytest.approx(expected["seconds"])


def test_a_date_is_taken_by_the_answers_own_clock() -> None:
    """Our clock an hour wrong changes nothing; without a Date header ours has to do."""
    headers = {"retry-after": "Wed, 04 Mar 2026 10:00:30 GMT", "date": "Wed, 04 Mar 2026 10:00:00 GMT"}
    assert wait_of(headers, now=datetime(2026, 3, 4, 11, tzinfo=UTC)) == (30.0, False)
    assert wait_of({"retry-after": headers["retry-after"]}, now=NOW) == (30.0, False)
    assert wait_of({"retry-after": headers["retry-after"]}, now=datetime(2026, 3, 4, 11, tzinfo=UTC)) == (None, False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6ms", 0.006), ("8.64s", 8.64), ("1m12.5s", 72.5), ("6m0s", 360.0), ("1h2m3s", 3723.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "0s", "5", "1d", "s", "6m 0s", "Infinity"])
def test_no_durations(text: str) -> None:
    assert duration_s(text) is None


def test_format_complaints_ask_to_adapt() -> None:
    told = {"error": {"message": "response_format.type: Input should be 'text' or 'json_object'"}}
    assert advise(500, {}, json.dumps(told), now=NOW).action == "adapt"
    told = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}
    assert advise(400, {}, json.dumps(told), now=NOW).action == "adapt"


@given(st.integers(0, 100), st.floats(0.3, 60), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_in_its_bounds(attempt: int, first: float, jitter: float) -> None:
    assert 0.3 <= backoff_s(attempt, first_s=first, jitter=jitter) <= 60


@given(
    st.integers(100, 599),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text()),
    st.binary(),
)
def test_any_answer_gets_advice(status: int, headers: dict[str, str], body: bytes) -> None:
    """No header and no body makes it fail, and a wait is positive and finite."""
    advice = advise(max(status, 400), headers, body, now=NOW)
    assert advice.seconds is None or 0 < advice.seconds < float("inf")

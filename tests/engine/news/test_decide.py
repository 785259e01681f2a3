# ruff: noqa: E501
"""Which date counts, whether it is certain, and whether it lies in a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.schema import Code, DateWitness, Window
from engine.core.windows import parse_window
from engine.news.decide import Decision, agree, decide, place, told_day

WINDOW = parse_window("2026-03-02..2026-03-08")
FIRST, LAST = (datetime(2026, month, 20, tzinfo=UTC).replace(tzinfo=None) for month in (2, 3))


def say(kind: Any, text: str, *, role: Any = "published", note: str = "", credible: bool = True) -> DateWitness:
    value = datetime.fromisoformat(text)
    day = len(text) == 10
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return DateWitness(
        kind=kind, value=aware.astimezone(UTC), precision="day" if day else "second", role=role,
        zone="none" if day else "stated", raw=text, note=note, credible=credible,
    )  # fmt: skip


NOON = "2026-03-04T12:00:00+00:00"


@pytest.mark.parametrize(
    ("witnesses", "published", "certain", "problem"),
    [
        ([], None, False, Code.NO_DATE),
        ([say("jsonld", NOON)], NOON, False, None),
        ([say("jsonld", NOON), say("url", "2026-03-04")], NOON, True, None),
        ([say("jsonld", NOON), say("feed", "2026-03-04T12:03:00+00:00")], NOON, True, None),
        ([say("jsonld", NOON), say("meta", "2026-03-06T12:00:00+00:00")], NOON, False, Code.DATE_CONFLICT),
        ([say("jsonld", NOON), say("feed", "2026-03-07T12:00:00+00:00")], NOON, False, Code.DATE_CONFLICT),
        ([say("jsonld", NOON), say("meta", NOON), say("feed", "2026-01-01T12:00:00+00:00")], NOON, False, None),
        ([say("jsonld", NOON), say("feed", "2026-03-07T12:00:00+00:00", credible=False)], NOON, False, None),
        ([say("htmldate", "2026-03-04", note="weak")], "2026-03-04", False, Code.DATE_WEAK),
        ([say("htmldate", "2026-03-04", note="weak"), say("time", "2026-03-04", note="weak")], "2026-03-04", True, None),
        ([say("meta", "2026-03-04", note="weak"), say("htmldate", "2026-03-04", note="weak")], "2026-03-04", False, None),
        ([say("first_seen", NOON)], NOON, False, Code.DATE_WEAK),
        ([say("api", NOON, note="weak")], NOON, False, Code.DATE_WEAK),
        ([say("meta", NOON, role="modified")], NOON, False, Code.DATE_WEAK),
        ([say("jsonld", NOON), say("first_seen", "2026-02-20T12:00:00+00:00")], NOON, False, Code.DATE_CONFLICT),
        ([say("jsonld", NOON), say("url", "2026-03-04"), say("first_seen", "2026-03-20T12:00:00+00:00")], NOON, True, None),
        ([say("jsonld", NOON), say("url", "2026-03-04"), say("jsonld", "2027-03-04T12:00:00+00:00", role="modified")], NOON, False, None),
        ([say("url", "2026-03-04"), say("feed", NOON)], NOON, True, None),
        ([say("sitemap", NOON), say("feed", NOON)], NOON, True, None),
    ],
)  # fmt: skip
def test_weighing(witnesses: list[DateWitness], published: str | None, certain: bool, problem: Code | None) -> None:
    decision = decide(witnesses)
    expected = say("jsonld", published).value if published else None
    assert (decision.published_at, decision.certain, decision.problem) == (expected, certain, problem)


@pytest.mark.parametrize(
    ("published", "problem", "code"),
    [
        (NOON, None, None),
        ("2026-03-02T00:00:00+00:00", None, None),
        ("2026-03-01T23:59:59+00:00", None, Code.OUTSIDE_WINDOW),
        ("2026-03-09T00:00:00+00:00", None, Code.OUTSIDE_WINDOW),
        (NOON, Code.DATE_WEAK, Code.DATE_WEAK),
        ("2026-01-01T00:00:00+00:00", Code.DATE_WEAK, Code.OUTSIDE_WINDOW),
        (None, Code.NO_DATE, Code.NO_DATE),
    ],
)
def test_placing(published: str | None, problem: Code | None, code: Code | None) -> None:
    decision = Decision(say("jsonld", published).value if published else None, problem=problem)
    found = place(decision, WINDOW)
    assert (found[0] if found else None) is code


def test_the_day_as_readers_saw_it() -> None:
    late = say("jsonld", "2026-03-09T03:28:35+00:00")
    assert str(told_day(decide([late, say("url", "2026-03-08")]), [late, say("url", "2026-03-08")])) == "2026-03-08"
    local = say("time", "2026-03-08T22:28:35-05:00")
    assert str(told_day(decide([late, local]), [late, local])) == "2026-03-08"
    assert str(told_day(decide([late]), [late])) == "2026-03-09"
    assert told_day(decide([]), []) is None


instants = st.datetimes(min_value=FIRST, max_value=LAST).map(lambda v: v.replace(microsecond=0, tzinfo=UTC))
witnesses = st.builds(
    lambda kind, value, role, weak, day: DateWitness(
        kind=kind,
        role=role,
        note="weak" if weak else "",
        precision="day" if day else "second",
        value=value.replace(hour=0, minute=0, second=0) if day else value,
        raw=value.isoformat(),
    ),
    st.sampled_from(["jsonld", "meta", "time", "url", "feed", "sitemap", "htmldate", "newspaper", "api", "first_seen"]),
    instants,
    st.sampled_from(["published", "modified"]),
    st.booleans(),
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(witnesses, max_size=6))
def test_a_date_is_always_one_that_a_witness_said(found: list[DateWitness]) -> None:
    decision = decide(found)
    assert decision.published_at is None or decision.published_at in {w.value for w in found}
    assert not (decision.certain and decision.problem)
    assert (decision.published_at is None) == (not found or decision.problem is Code.NO_DATE)


@settings(deadline=None)
@given(st.lists(witnesses, max_size=6), st.integers(1, 6))
def test_a_week_in_two_halves_holds_the_same_articles(found: list[DateWitness], days: int) -> None:
    decision = decide(found)
    cut = WINDOW.first + timedelta(days=days)
    halves = [Window(first=WINDOW.first, last=cut - timedelta(days=1)), Window(first=cut, last=WINDOW.last)]
    inside = [place(decision, half) is None for half in halves]
    assert (place(decision, WINDOW) is None) == any(inside)
    assert not all(inside)


@settings(deadline=None)
@given(witnesses, witnesses)
def test_agreement_is_mutual(a: DateWitness, b: DateWitness) -> None:
    assert agree(a, b) == agree(b, a)
    assert agree(a, a)

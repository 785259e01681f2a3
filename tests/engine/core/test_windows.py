"""Windows: the forms people write, the default week, ranges that touch."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError, RefusedError
from engine.core.schema import Window
from engine.core.windows import latest_days, latest_window, parse_window, require_closed, split_range


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("250323_250411", date(2025, 3, 23), date(2025, 4, 11)),
        ("NEST_250323_250411", date(2025, 3, 23), date(2025, 4, 11)),
        ("2026-W48", date(2026, 11, 23), date(2026, 11, 29)),
        ("2026-11-23..2026-11-29", date(2026, 11, 23), date(2026, 11, 29)),
        ("2026-11-23", date(2026, 11, 23), date(2026, 11, 23)),
        ("2020-W53", date(2020, 12, 28), date(2021, 1, 3)),
    ],
)
def test_accepted_forms(text: str, first: date, last: date) -> None:
    assert parse_window(text) == Window(first=first, last=last)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-W60",
        "250411_250323",
        "251301_251302",
        "next week",
        "2026-11-23..",
        "25032_250411",
        "２５0323_250411",
        "1926-W47",
        "2069-01-01",
    ],
)
def test_other_forms_name_the_accepted_ones(text: str) -> None:
    with pytest.raises(ConfigError, match=r"window|write"):
        parse_window(text)


def test_the_published_name() -> None:
    window = parse_window("250323_250411")
    assert window.name == "NEST_250323_250411"
    assert window.days == 20
    assert window.contains(datetime(2025, 4, 11, 23, 59, 59, tzinfo=UTC))
    assert not window.contains(datetime(2025, 4, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("now", "label"),
    [
        (datetime(2026, 11, 30, 11, tzinfo=UTC), "261116_261122"),
        (datetime(2026, 12, 1, 23, 59, tzinfo=UTC), "261116_261122"),
        (datetime(2026, 12, 2, 0, 0, tzinfo=UTC), "261123_261129"),
        (datetime(2026, 12, 6, 12, tzinfo=UTC), "261123_261129"),
    ],
)
def test_the_default_is_the_latest_week_that_ended_two_days_ago(now: datetime, label: str) -> None:
    assert latest_window(now).label == label


@given(st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)), st.integers(0, 30))  # noqa: DTZ001
def test_the_default_window_law(moment: datetime, lag: int) -> None:
    now = moment.replace(tzinfo=UTC)
    window = latest_window(now, lag_days=lag)
    assert window.first.weekday() == 0
    assert window.days == 7
    assert window.end + timedelta(days=lag) <= now < window.end + timedelta(days=lag + 7)


@given(st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2068, 1, 1)))  # noqa: DTZ001
def test_the_latest_days_are_over_and_no_later_ones_are(moment: datetime) -> None:
    now = moment.replace(tzinfo=UTC)
    window = latest_days(now)
    assert window.days == 7
    assert window.end <= now < window.end + timedelta(days=1)


def test_open_and_future_windows_are_refused() -> None:
    now = datetime(2026, 11, 25, tzinfo=UTC)
    with pytest.raises(RefusedError, match="still open"):
        require_closed(parse_window("2026-W48"), now)
    with pytest.raises(RefusedError, match="future"):
        require_closed(parse_window("2026-W50"), now)
    require_closed(parse_window("2026-W47"), now)


@given(st.dates(date(2000, 1, 1), date(2090, 1, 1)), st.integers(0, 500), st.integers(1, 60))
def test_a_split_range_touches_and_covers(first: date, length: int, every: int) -> None:
    last = first + timedelta(days=length)
    windows = split_range(first, last, every_days=every)
    assert windows[0].first == first
    assert windows[-1].last == last
    assert all(b.first == a.last + timedelta(days=1) for a, b in pairwise(windows))
    assert all(a.end == b.start for a, b in pairwise(windows))
    assert all(w.days == every for w in windows[:-1])

"""Reading windows as people write them, and choosing the default one. No clock: `now` is an argument."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from engine.core.errors import ConfigError, RefusedError
from engine.core.schema import Window

FORMS = "250323_250411, 2026-W48 or 2026-11-23..2026-11-29"


def parse_window(text: str) -> Window:
    """A window from `yymmdd_yymmdd` (with or without `NEST_` before it), an ISO week, a range of dates or one date.

    Raises `ConfigError` with the accepted forms.
    """
    found = text.strip().removeprefix("NEST_")
    try:
        if match := re.fullmatch(r"(\d{6})_(\d{6})", found, re.ASCII):
            first, last = (datetime.strptime(part, "%y%m%d").date() for part in match.groups())  # noqa: DTZ007
        elif match := re.fullmatch(r"(\d{4})-W(\d{2})", found, re.ASCII):
            first = date.fromisocalendar(int(match[1]), int(match[2]), 1)
            last = first + timedelta(days=6)
        elif match := re.fullmatch(r"(\d{4}-\d{2}-\d{2})(?:\.\.|/)(\d{4}-\d{2}-\d{2})", found, re.ASCII):
            first, last = date.fromisoformat(match[1]), date.fromisoformat(match[2])
        elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", found, re.ASCII):
            first = last = date.fromisoformat(found)
        else:
            raise ConfigError(f"'{text}' is not a window: write {FORMS}")
    except ValueError as error:
        raise ConfigError(f"'{text}' is not a window ({error}): write {FORMS}") from error
    if last < first:
        raise ConfigError(f"the window '{text}' ends on {last}, before it begins on {first}")
    if not 1969 <= first.year <= last.year <= 2068:
        raise ConfigError(f"the window '{text}' lies outside 1969 to 2068: names hold two digits of the year")
    return Window(first=first, last=last)


def latest_window(now: datetime, *, lag_days: int = 2) -> Window:
    """The latest Monday-to-Sunday week (UTC) that ended at least `lag_days` before the aware instant `now`."""
    day = now.date() - timedelta(days=lag_days)
    # a week has ended for `day` when its Sunday lies before it
    last = day - timedelta(days=day.weekday() + 1)
    return Window(first=last - timedelta(days=6), last=last)


def latest_days(now: datetime, *, days: int = 7) -> Window:
    """The `days` days (UTC) that ended last before the aware instant `now`: what feeds still show, for a pilot."""
    last = now.date() - timedelta(days=1)
    return Window(first=last - timedelta(days=days - 1), last=last)


def require_closed(window: Window, now: datetime) -> None:
    """Refuse a window that is not over: its news is still coming. Raises `RefusedError`."""
    if window.start > now:
        raise RefusedError(
            f"the window {window.label} lies in the future: it begins on {window.first}, today is {now.date()}"
        )
    if window.end > now:
        raise RefusedError(
            f"the window {window.label} is still open until the end of {window.last} (UTC): "
            f"run it on {window.last + timedelta(days=1)} or later"
        )


def split_range(first: date, last: date, *, every_days: int = 7) -> list[Window]:
    """Touching windows of `every_days` days that cover the range; a shorter rest at the end is left out of none:
    it is a window of its own."""
    if every_days < 1:
        raise ConfigError(f"a window has at least one day, got {every_days}")
    if last < first:
        raise ConfigError(f"the range ends on {last}, before it begins on {first}")
    if last > date.max - timedelta(days=every_days + 1):
        raise ConfigError(f"the range ends on {last}, too near the end of the calendar")
    windows = []
    day = first
    while day <= last:
        end = min(day + timedelta(days=every_days - 1), last)
        windows.append(Window(first=day, last=end))
        day = end + timedelta(days=1)
    return windows

"""The window of a snapshot: for people a closed range of UTC dates, in code a half-open range of instants."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from pydantic import model_validator

from engine.core.schema.base import Record


class Window(Record):
    """Days `first` to `last`, both in, in UTC. `label` is `yymmdd_yymmdd`, as in `NEST_250323_250411`."""

    first: date
    last: date

    @model_validator(mode="after")
    def _ordered(self) -> Window:
        if self.last < self.first:
            raise ValueError(f"the window ends on {self.last}, before it begins on {self.first}")
        return self

    @property
    def label(self) -> str:
        return f"{self.first:%y%m%d}_{self.last:%y%m%d}"

    @property
    def name(self) -> str:
        """Name of the snapshot folder and Hub repository."""
        return f"NEST_{self.label}"

    @property
    def start(self) -> datetime:
        """First instant inside."""
        return datetime.combine(self.first, time.min, UTC)

    @property
    def end(self) -> datetime:
        """First instant after the window."""
        return datetime.combine(self.last + timedelta(days=1), time.min, UTC)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def contains(self, instant: datetime) -> bool:
        """Whether an aware instant falls inside."""
        return self.start <= instant < self.end

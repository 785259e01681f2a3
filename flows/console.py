"""What the user sees while a run goes on: lines and bars on stderr. Data never goes through here."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from flows import log

_lock = threading.Lock()


def say(text: str) -> None:
    """One line on stderr; a JSON object where `NEST_LOG=json` asks for that."""
    if log.as_json() and not (text := log.line(text)):
        return
    with _lock:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the one place that speaks


def out(text: str) -> None:
    """Data on stdout."""
    with _lock:
        print(text, flush=True)  # noqa: T201 - the one place that speaks


def is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not log.as_json()


@dataclass
class Bar:
    """Progress of one stage: a redrawn line on a terminal, else a line at most every ten seconds."""

    label: str
    total: int
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    _shown: float = 0.0

    def step(self, count: int = 1) -> None:
        self.done += count
        now = time.monotonic()
        terminal = is_terminal()
        if now - self._shown < (0.1 if terminal else 10.0) and self.done < self.total:
            return
        self._shown = now
        rate = self.done / max(now - self.started, 1e-6)
        if terminal:
            width = 24
            filled = int(width * self.done / max(self.total, 1))
            bar = "#" * filled + "." * (width - filled)
            with _lock:
                sys.stderr.write(f"\r  {self.label:<10} [{bar}] {self.done}/{self.total}  {rate:.1f}/s ")
                sys.stderr.flush()
        elif self.done < self.total:
            say(f"  {self.label:<10} {self.done}/{self.total}  {rate:.1f}/s")


@contextmanager
def bar(label: str, total: int) -> Iterator[Bar]:
    """A bar for the body; it leaves no half-drawn line behind."""
    shown = Bar(label, total)
    try:
        yield shown
    finally:
        if is_terminal() and shown._shown:
            sys.stderr.write("\r" + " " * 72 + "\r")
            sys.stderr.flush()


def table(rows: list[list[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Columns in plain text; the first row is the head, columns in `right` are aligned right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
        if number == 0:
            lines.append("  ".join("-" * w for w in widths))
    return "\n".join(lines)

"""Records of many JSONL files in the memory of their places: gone through once, then read again one by one; and any
number of records brought in order in the memory of some."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

from engine.core.errors import TerminalError
from engine.core.schema import Record

R = TypeVar("R", bound=Record)
#: Records sorted at a time; a thousand losses are a megabyte.
RUN_ITEMS = 2000


class Lines(Generic[R]):
    """Positions count over all files in the order in which they were added."""

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind
        self._files: list[Path] = []
        self._numbers, self._offsets = array("L"), array("Q")

    def add(self, path: Path) -> Iterator[tuple[int, R]]:
        """The records of one more file with their positions. Raises `TerminalError` for one that does not fit."""
        self._files.append(path)
        number = len(self._files) - 1
        try:
            handle = path.open("rb")
        except OSError as error:
            raise TerminalError(f"{path} cannot be read: {error.strerror}") from error
        with handle:
            at = 0
            for line in handle:
                if line.strip():
                    self._numbers.append(number)
                    self._offsets.append(at)
                    yield len(self._numbers) - 1, self._read(path, line)
                at += len(line)

    def read(self, position: int) -> R:
        """One record again."""
        path, at = self._files[self._numbers[position]], self._offsets[position]
        try:
            with path.open("rb") as handle:
                handle.seek(at)
                return self._read(path, handle.readline())
        except OSError as error:
            raise TerminalError(f"{path} cannot be read: {error.strerror}") from error

    def _read(self, path: Path, line: bytes) -> R:
        try:
            return self._kind.read(json.loads(line))
        except ValueError as error:
            raise TerminalError(f"{path}: a line that is no {self._kind.__name__}: {error}") from error


def in_order(items: Iterable[R], kind: type[R], *, key: Callable[[R], Any], folder: Path) -> Iterator[R]:
    """Records sorted by a key, those with one key in the order in which they came, in the memory of `RUN_ITEMS` of
    them: sorted runs lie in files without a name in `folder` and are gone with the process."""
    runs: list[Iterator[R]] = []
    source = iter(items)
    with ExitStack() as stack:
        while run := sorted(islice(source, RUN_ITEMS), key=key):
            if len(run) < RUN_ITEMS:
                runs.append(iter(run))
                break
            handle = stack.enter_context(TemporaryFile(dir=folder))
            handle.writelines(item.line().encode() + b"\n" for item in run)
            handle.seek(0)
            runs.append(kind.read(json.loads(line)) for line in handle)
            del run
        yield from merge(*runs, key=key)

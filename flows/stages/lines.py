"""Records of many JSONL files in the memory of their places: gone through once, then read again one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from engine.core.errors import TerminalError
from engine.core.schema import Record

R = TypeVar("R", bound=Record)


class Lines(Generic[R]):
    """Positions count over all files in the order in which they were added."""

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind
        self._files: list[Path] = []
        self._places: list[tuple[int, int]] = []

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
                    self._places.append((number, at))
                    yield len(self._places) - 1, self._read(path, line)
                at += len(line)

    def read(self, position: int) -> R:
        """One record again."""
        number, at = self._places[position]
        path = self._files[number]
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

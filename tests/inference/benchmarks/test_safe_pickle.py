"""Pickles are read as plain data: code in them is not run, broken ones are told."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from engine.core.errors import TerminalError
from inference.benchmarks.safe_pickle import read_plain_pickle


class Hostile:
    """An object whose unpickling would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.path, "it ran"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_not_run(tmp_path: Path, protocol: int) -> None:
    trap, file = tmp_path / "trap", tmp_path / "refs(unc).p"
    file.write_bytes(pickle.dumps([{"ref_id": 1}, Hostile(trap)], protocol=protocol))
    with pytest.raises(TerminalError, match="Nothing in it was run"):
        read_plain_pickle(file)
    assert not trap.exists()
    pickle.loads(file.read_bytes())
    assert trap.exists(), "the trap works"


def test_plain_pickles_are_read_and_broken_ones_are_not(tmp_path: Path) -> None:
    file = tmp_path / "x.p"
    value = [{"a": 1, "b": ["ü", 2.5, None, True], "c": (1, 2)}]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps(value, protocol=protocol))
        assert read_plain_pickle(file) == value
    file.write_bytes(b"(dp0\nS'a'\np1\nI1\ns.")
    assert read_plain_pickle(file) == {"a": 1}
    file.write_bytes(b"\x80\x04garbage")
    with pytest.raises(TerminalError, match=r"x\.p is not read"):
        read_plain_pickle(file)

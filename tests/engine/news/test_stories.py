"""Sketches of texts: where they lie, what they find, and what pairs make one story."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import TerminalError
from engine.news.stories import LEAST_EQUAL, Sketches, clusters, pairs_of, sketch_of


@settings(deadline=None)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30))
def test_clusters_are_what_the_pairs_connect(count: int, pairs: list[tuple[int, int]]) -> None:
    pairs = [(a % count, b % count) for a, b in pairs]
    found = clusters(count, pairs)
    assert all(found[a] == found[b] for a, b in pairs)
    assert all(found[i] <= i and found[found[i]] == found[i] for i in range(count))
    if not pairs:
        assert list(found) == list(range(count))


def test_texts_without_words_are_no_story() -> None:
    texts = ["...", "!!!"]
    same, near_ones = pairs_of(Sketches(map(sketch_of, texts)), lambda index: texts[index])
    assert (same, near_ones) == ([], [])


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 2500])
def test_sketches_are_the_same_on_disk_and_in_memory(count: int) -> None:
    made = np.random.default_rng(count).integers(0, 9, size=(count, 128), dtype=np.uint32)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    sketches = Sketches(made)
    assert len(sketches) == count
    assert np.array_equal(sketches.columns(3, 5), made[:, 3:5])
    if count:
        others = np.arange(0, count, 7)
        equal = np.count_nonzero(made[others] == made[count - 1], axis=1)
        assert np.array_equal(sketches.near(count - 1, others), equal >= LEAST_EQUAL)
    del sketches
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_a_temporary_folder_that_takes_no_more_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TerminalError, match="No space left"):
        Sketches(np.zeros((1024, 128), dtype=np.uint32))

"""Out of memory: halve and go on, and an item of its own that does not fit is said, also by errors without words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

from segmentation.device import OutOfMemory, in_batches

pytestmark = pytest.mark.gpu_extra


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("no room"), RuntimeError("can't allocate memory: 8 TB")])
def test_batches_are_halved_until_they_fit(error: Exception) -> None:
    sizes: list[int] = []

    def run(part: Sequence[int]) -> list[int]:
        sizes.append(len(part))
        if len(part) > 2:
            raise error
        return [item * 2 for item in part]

    assert in_batches(list(range(10)), run, batch=8) == [item * 2 for item in range(10)]
    assert sizes == [8, 4, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("no room")])
def test_one_that_does_not_fit_is_a_sentence(error: Exception) -> None:
    def run(part: Sequence[int]) -> list[int]:
        raise error

    with pytest.raises(OutOfMemory, match=str(error) or "MemoryError"):
        in_batches([1], run, batch=4)


def test_another_error_is_not_taken_for_it() -> None:
    def run(part: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        in_batches([1, 2], run, batch=2)

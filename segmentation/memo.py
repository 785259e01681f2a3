"""Remembering what was computed for an image, by its pixels: rows of one picture ask for the same thing several times.

Only for functions whose result depends on their key alone, so that remembering never changes a result. Bounded by the
bytes that the results hold, since pictures may be large.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Memo(Generic[V]):
    """A least-recently-used memory of at most `max_bytes`, by the weight that `weigh` gives each value. Thread-safe;
    two threads that miss at once both compute."""

    def __init__(self, weigh: Callable[[V], int], *, max_bytes: int) -> None:
        self._weigh = weigh
        self._max_bytes = max_bytes
        self._held = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], V]) -> V:
        """The value of a key, computed if it is not remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = compute()
        weight = self._weigh(value)
        with self._lock:
            if key not in self._values and weight <= self._max_bytes:
                self._values[key] = (value, weight)
                self._held += weight
            while self._held > self._max_bytes:
                _, (_, gone) = self._values.popitem(last=False)
                self._held -= gone
        return value

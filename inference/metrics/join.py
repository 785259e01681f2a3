"""Bringing predictions to their samples while both stream by.

Where both come in the order of ids, as the store writes them, nothing is kept. Predictions that come too early
are held until their sample is there; those that come after their sample has passed are held for a second walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.core.schema import Prediction


class Joiner:
    """Predictions of one segmenter, taken by sample id.

    While the predictions' ids ascend, one with a larger id than the wanted sample's shows that the wanted one is
    not coming, so that a missing prediction doesn't make the rest pile up in memory. `duplicates` lists ids that
    came twice; the first one counts.
    """

    def __init__(self, name: str, predictions: Iterable[Prediction]) -> None:
        self.name = name
        self.duplicates: list[str] = []
        self.foreign: list[str] = []
        self._stream: Iterator[Prediction] = iter(predictions)
        self._held: dict[str, Prediction] = {}
        self._last = ""
        self._ascending = True
        self._wanted_last = ""
        self._done = False

    def take(self, sample_id: str) -> Prediction | None:
        """The prediction for a sample, or None if it has not come (it may still be `left`)."""
        self._ascending = self._ascending and sample_id > self._wanted_last
        self._wanted_last = sample_id
        while sample_id not in self._held:
            if self._done or (self._ascending and self._last > sample_id):
                return None
            self._pull()
        return self._held.pop(sample_id)

    def left(self) -> dict[str, Prediction]:
        """All predictions that no sample has taken, once every sample has asked."""
        while not self._done:
            self._pull()
        return self._held

    def _pull(self) -> None:
        found = next(self._stream, None)
        if found is None:
            self._done = True
            return
        if found.segmenter != self.name:
            self.foreign.append(found.sample_id)
        if found.sample_id == self._last or found.sample_id in self._held:
            self.duplicates.append(found.sample_id)
            return
        self._ascending = self._ascending and found.sample_id > self._last
        self._last = found.sample_id
        self._held[found.sample_id] = found

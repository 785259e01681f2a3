"""What a report says of each sample and answer, kept out of memory while a benchmark streams by.

Texts go to a temporary file as JSON lines (small runs never touch the disk), tags become numbers, image keys digests,
so that a sample costs some tens of bytes. Read back, they come in the order of the samples.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from inference.benchmarks.base import BenchmarkSample
from inference.metrics.answers import exact, token_f1
from inference.metrics.bootstrap import clusters
from inference.metrics.units import Flags, Ints, Reals

#: Texts beyond this go from memory to the disk, in bytes.
IN_MEMORY = 4_000_000
#: A tag with more values than this is no split of the data.
MAX_PARTS = 12
NOVELTY = "novelty:"


class Spool:
    """Values as JSON lines in a temporary file, read again in the order they came."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115

    def append(self, value: object) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

    def __iter__(self) -> Iterator[Any]:
        self._file.seek(0)
        for line in self._file:
            yield json.loads(line)
        self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Text:
    """A sample's own words."""

    id: str
    question: str
    answer: str
    tags: dict[str, str]


class Texts:
    """The samples of a run in their order."""

    def __init__(self) -> None:
        self.count = 0
        self._spool = Spool()
        self._keys: tuple[array[int], array[int]] = (array("i"), array("Q"))
        #: tag -> (number of each value, value of each sample as its number + 1, 0 for none); None for too many values
        self._tags: dict[str, tuple[dict[str, int], array[int]] | None] = {}

    def add(self, sample: BenchmarkSample) -> None:
        self._spool.append([sample.id, sample.question, sample.answer, dict(sample.tags)])
        for key in sample.image_keys:
            self._keys[0].append(self.count)
            self._keys[1].append(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big"))
        for tag, value in sample.tags.items():
            if value:
                self._tag(tag, value)
        self.count += 1

    def _tag(self, tag: str, value: str) -> None:
        found = self._tags.setdefault(tag, ({}, array("b")))
        if found is None:
            return
        values, numbers = found
        if value not in values and len(values) == MAX_PARTS:
            self._tags[tag] = None
            return
        numbers.extend([0] * (self.count - len(numbers)))
        numbers.append(values.setdefault(value, len(values)) + 1)

    def __iter__(self) -> Iterator[Text]:
        return (Text(*found) for found in self._spool)

    def close(self) -> None:
        self._spool.close()

    def clusters(self) -> Ints:
        """Cluster number per sample, see `bootstrap.clusters`."""
        sample, key = self._keys
        return clusters(np.array(sample, dtype=np.int64), np.array(key, dtype=np.uint64), self.count)

    def parts(self) -> Iterator[tuple[str, dict[str, Flags]]]:
        """Per tag that splits the data its values, each with a flag per sample."""
        for tag in sorted(self._tags):
            found = self._tags[tag]
            if found is None or (len(found[0]) < 2 and not tag.startswith(NOVELTY)):
                continue
            numbers = np.zeros(self.count, dtype=np.int8)
            numbers[: len(found[1])] = found[1]
            yield tag, {value: numbers == found[0][value] + 1 for value in sorted(found[0])}


@dataclass(slots=True)
class Answers:
    """One segmenter's answers: verdicts per sample (NaN where it gave none), texts in a file."""

    given: int = 0
    _correct: array[float] = field(default_factory=lambda: array("d"))
    _f1: array[float] = field(default_factory=lambda: array("d"))
    _spool: Spool = field(default_factory=Spool)

    def add(self, place: int, sample: BenchmarkSample, answer: str | None) -> None:
        """The answer to the sample at a place; samples that are not told of gave none."""
        if answer is None:
            return
        for column in (self._correct, self._f1):
            column.extend([float("nan")] * (place + 1 - len(column)))
        names = (sample.answer, *sample.aliases)
        self.given += 1
        self._correct[place] = float(exact(answer, names))
        self._f1[place] = token_f1(answer, names)
        self._spool.append([place, answer])

    def close(self) -> None:
        self._spool.close()

    def columns(self, count: int) -> tuple[Reals, Reals]:
        """Correct and token F1 per sample."""
        return _padded(self._correct, count), _padded(self._f1, count)

    def texts(self, count: int) -> list[str | None]:
        found: list[str | None] = [None] * count
        for place, answer in self._spool:
            found[place] = answer
        return found


def _padded(values: array[float], count: int) -> Reals:
    found: Reals = np.full(count, np.nan)
    found[: len(values)] = values
    return found

"""The one walk over a benchmark: decode each true mask once, count every prediction against it.

Decoding and counting run in a few threads with a bounded look-ahead; results are appended in the order of the
samples, so that neither order nor number of threads shows in the outcome.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from engine.core.errors import ConfigError
from engine.core.geometry import Mask
from engine.core.schema import ModelRef, Prediction
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask
from inference.metrics.baselines import BASELINES, random_box
from inference.metrics.counts import Counts, Prepared, count_rle, nothing, prepare
from inference.metrics.join import Joiner
from inference.metrics.texts import Answers, Texts
from inference.metrics.units import FAILED, FAILURES, SCORED, Pairs, Tally

#: samples per job, and jobs ahead of the one that is waited for
BATCH, AHEAD = 8, 3


@dataclass(frozen=True, slots=True)
class _Unit:
    image: int
    counts: Counts
    status: int = SCORED
    failure: int = -1
    said_none: bool = False


@dataclass(slots=True)
class _Result:
    """What one sample gives: per truth the images with the counts of a random box, per (segmenter, truth) the pairs,
    and what does not fit."""

    boxes: list[tuple[str, int, Counts]] = field(default_factory=list)
    units: list[tuple[str, str, _Unit]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Walk:
    """State of a scoring run; after `run` the columns and the samples' texts are complete."""

    joiners: list[Joiner]
    truth_name: str
    others: dict[str, Callable[[str], Sequence[Mask | None] | None]]
    seed: int
    size_px: int | None
    workers: int
    pairs: dict[str, Pairs] = field(default_factory=dict)
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    samples: Texts = field(default_factory=Texts)
    answers: dict[str, Answers] = field(default_factory=dict)
    models: dict[str, tuple[ModelRef, ...]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _hashes: dict[str, int] = field(default_factory=dict)

    def run(self, benchmark: Benchmark) -> None:
        """Walk the benchmark, and once more for predictions that came after their sample."""
        names = [joiner.name for joiner in self.joiners]
        clash = sorted(set(names) & set(BASELINES))
        if clash:
            raise ConfigError(f"a segmenter cannot be called {', '.join(clash)}: that is a baseline")
        self.pairs = {truth: Pairs() for truth in (self.truth_name, *self.others)}
        self.tallies = {(name, truth): Tally() for truth in self.pairs for name in names}
        self.answers = {name: Answers() for name in names}
        self._hashes = dict.fromkeys(names, 0)
        for result, place in self._counted(self._jobs(benchmark)):
            self._append(result, place)
        self._late(benchmark)
        self.digests = {name: f"{value:064x}" for name, value in self._hashes.items()}

    def close(self) -> None:
        """Give the temporary files back; nothing can be read after it."""
        self.samples.close()
        for found in self.answers.values():
            found.close()

    def complaints(self) -> list[str]:
        """Everything that does not fit, in a fixed order."""
        found = list(self.problems)
        for joiner in self.joiners:
            found += [f"{joiner.name}: there are two predictions for {one}" for one in sorted(joiner.duplicates)]
            found += [f"{joiner.name}: no sample has the id {one}" for one in sorted(joiner.left())]
            found += [f"{joiner.name}: the prediction for {one} is another segmenter's" for one in joiner.foreign]
        return found

    # -- the walk

    def _jobs(self, benchmark: Benchmark) -> Iterator[tuple[BenchmarkSample, int, list[Prediction | None]]]:
        for place, sample in enumerate(benchmark.without_images()):
            self.samples.add(sample)
            found = [joiner.take(sample.id) for joiner in self.joiners]
            for joiner, prediction in zip(self.joiners, found, strict=True):
                self._meet(joiner.name, place, sample, prediction)
            yield sample, place, found

    def _counted(
        self, jobs: Iterator[tuple[BenchmarkSample, int, list[Prediction | None]]]
    ) -> Iterator[tuple[_Result, int]]:
        waiting: deque[Future[list[tuple[_Result, int]]]] = deque()
        with ThreadPoolExecutor(max_workers=max(1, self.workers), thread_name_prefix="score") as pool:
            while batch := list(islice(jobs, BATCH)):
                waiting.append(pool.submit(self._count_batch, batch))
                if len(waiting) > AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()

    def _late(self, benchmark: Benchmark) -> None:
        late = {joiner.name: joiner.left() for joiner in self.joiners}
        held = {one for found in late.values() for one in found}
        places = {text.id: place for place, text in enumerate(self.samples) if text.id in held} if held else {}
        if not places:
            return

        def jobs() -> Iterator[tuple[BenchmarkSample, int, list[Prediction | None]]]:
            for sample in benchmark.without_images():
                if sample.id not in places:
                    continue
                place = places[sample.id]
                found = [late[joiner.name].pop(sample.id, None) for joiner in self.joiners]
                for joiner, prediction in zip(self.joiners, found, strict=True):
                    self._meet(joiner.name, place, sample, prediction)
                yield sample, place, found

        for result, place in self._counted(jobs()):
            self._append(result, place, late=True)

    def _append(self, result: _Result, place: int, *, late: bool = False) -> None:
        self.problems += result.complaints
        for truth, image, counts in () if late else result.boxes:
            self.pairs[truth].add(place, image, counts)
        for name, truth, unit in result.units:
            self.tallies[name, truth].add(
                place, unit.image, unit.counts, status=unit.status, failure=unit.failure, said_none=unit.said_none
            )

    def _meet(self, name: str, place: int, sample: BenchmarkSample, prediction: Prediction | None) -> None:
        if prediction is None:
            return
        # a sum of digests does not depend on the order in which the predictions came
        digest = int.from_bytes(hashlib.sha256(prediction.line().encode()).digest(), "big")
        self._hashes[name] = (self._hashes[name] + digest) % 2**256
        self.answers[name].add(place, sample, prediction.answer)
        if prediction.models and name not in self.models:
            self.models[name] = prediction.models

    # -- one sample, in a thread

    def _count_batch(
        self, batch: list[tuple[BenchmarkSample, int, list[Prediction | None]]]
    ) -> list[tuple[_Result, int]]:
        return [(self._count_sample(sample, found), place) for sample, place, found in batch]

    def _count_sample(self, sample: BenchmarkSample, found: list[Prediction | None]) -> _Result:
        result = _Result()
        truths: dict[str, list[Prepared | None]] = {
            self.truth_name: [_prepared(mask, self.size_px) for mask in _masks(sample, result)]
        }
        first = truths[self.truth_name]
        for name, lookup in self.others.items():
            masks = lookup(sample.id)
            if masks is None:
                continue
            if len(masks) != len(first):
                result.complaints.append(f"truth {name}: {sample.id} has {len(masks)} masks for {len(first)} images")
                continue
            truths[name] = [None if mask is None else prepare(mask, size_px=self.size_px) for mask in masks]
            for place, (other, own) in enumerate(zip(truths[name], first, strict=True)):
                if other and own and other.shape != own.shape:
                    result.complaints.append(
                        f"truth {name}: the mask of {sample.id}, image {place} is {_size(other.shape)}, "
                        f"the benchmark's {_size(own.shape)}"
                    )
        if result.complaints:
            return result
        for name, prepared in truths.items():
            for place, truth in enumerate(prepared):
                if truth is not None:
                    box = random_box(truth, key=f"{sample.id}/{place}", seed=self.seed)
                    result.boxes.append((name, place, box))
        for joiner, prediction in zip(self.joiners, found, strict=True):
            if prediction is not None:
                self._count_prediction(joiner.name, prediction, truths, result)
        return result

    def _count_prediction(
        self, name: str, prediction: Prediction, truths: dict[str, list[Prepared | None]], result: _Result
    ) -> None:
        first = truths[self.truth_name]
        where = f"{name}: {prediction.sample_id}"
        if len(prediction.masks) != len(first):
            result.complaints.append(f"{where} has {len(prediction.masks)} masks for {len(first)} images")
            return
        for place, rle in enumerate(prediction.masks):
            own = first[place]
            if rle is not None and own is not None and rle.size != own.shape:
                result.complaints.append(
                    f"{where}, image {place}: the mask is {_size(rle.size)}, the image {_size(own.shape)}"
                )
                continue
            failure = prediction.failures[place] if place < len(prediction.failures) else None
            said = prediction.no_target[place] if place < len(prediction.no_target) else None
            for truth_name, prepared in truths.items():
                truth = prepared[place]
                if truth is None:
                    continue
                if rle is None:
                    if failure is None:
                        continue  # not spoken of: the pair stays missing
                    unit = _Unit(place, nothing(truth), FAILED, FAILURES.index(failure.kind))
                else:
                    try:
                        counts = count_rle(truth, rle)
                    except ValueError as error:
                        result.complaints.append(f"{where}, image {place}: {error}")
                        break
                    empty = counts.predicted + counts.predicted_ignored == 0
                    unit = _Unit(place, counts, said_none=empty if said is None else said)
                result.units.append((name, truth_name, unit))


def _prepared(truth: TruthMask, size_px: int | None) -> Prepared:
    if truth.spans is not None and truth.ignore is None and size_px is None:
        return Prepared(truth.spans, None, truth.shape, None)
    return prepare(truth.mask, ignore=truth.ignore, size_px=size_px)


def _masks(sample: BenchmarkSample, result: _Result) -> tuple[TruthMask, ...]:
    masks = sample.masks()
    if not masks:
        result.complaints.append(f"the benchmark's sample {sample.id} has no masks")
    return masks


def _size(shape: tuple[int, int]) -> str:
    return f"{shape[1]}x{shape[0]} pixels"

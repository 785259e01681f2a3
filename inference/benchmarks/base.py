"""What every benchmark looks like to the rest: named, pinned, and read again and again as lazy samples.

A loader builds a `Benchmark`; segmenters get `BenchmarkSample.item()`, which holds neither answer nor mask, and
metrics get the masks. Images and masks are decoded only when asked for, so that a benchmark of any size is
walked in flat memory. Reading formats lives in the loaders, choosing one by name in `registry`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt

from engine.core.errors import TerminalError
from engine.core.geometry import Image, Mask
from engine.core.images import ImageError, open_image
from engine.core.protocols import EvalItem
from inference.spans import Spans


@dataclass(frozen=True, slots=True)
class TruthMask:
    """The true mask of one image, and the pixels (H, W) that no metric may look at, if there are any.

    `pixels` (H, W) is boolean, or grey with 0 and 255 as it came out of a file; then `spans` are known, and `mask`
    makes the boolean array on each use. An empty mask means that the target is not in the image.
    """

    pixels: npt.NDArray[np.bool_] | npt.NDArray[np.uint8]
    ignore: Mask | None = None
    spans: Spans | None = None

    def __post_init__(self) -> None:
        if self.pixels.ndim != 2 or self.pixels.dtype != (np.bool_ if self.spans is None else np.uint8):
            raise ValueError(f"a mask is a boolean array (H, W), got {self.pixels.dtype} {self.pixels.shape}")
        if self.ignore is not None and self.ignore.shape != self.shape:
            raise ValueError(f"mask and ignored pixels differ in shape: {self.shape}, {self.ignore.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.pixels.shape[0]), int(self.pixels.shape[1])

    @property
    def mask(self) -> Mask:
        """The boolean array (H, W)."""
        return self.pixels if self.pixels.dtype == np.bool_ else self.pixels > 0  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class BenchmarkSample:
    """One question with its images and true masks (same length, same order).

    `encoded` gives the images' bytes as stored, `decode_masks` the masks; both are called on each use and keep
    nothing. `image_keys` identify the images (equal key, same picture): samples that share one are one cluster
    for the intervals. `tags` are the parts of the data a sample belongs to, e.g. {"domain": "Sports"}.
    `cutoff` is the last instant of which retrieval may know, `blocked` URLs it must not read.
    """

    id: str
    question: str
    answer: str
    encoded: Callable[[], tuple[bytes, ...]]
    decode_masks: Callable[[], tuple[TruthMask, ...]]
    aliases: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    image_keys: tuple[str, ...] = ()
    cutoff: datetime | None = None
    blocked: tuple[str, ...] = ()

    def images(self) -> tuple[Image, ...]:
        """Upright RGB images. Raises `TerminalError` naming the sample for bytes that cannot be opened."""
        opened = []
        for index, data in enumerate(self.encoded()):
            try:
                opened.append(open_image(data).pixels)
            except ImageError as error:
                raise TerminalError(f"sample {self.id}, image {index}: {error.detail}") from error
        return tuple(opened)

    def masks(self) -> tuple[TruthMask, ...]:
        """The true masks, decoded."""
        return self.decode_masks()

    def item(self) -> EvalItem:
        """What a segmenter may see: never the answer, never the masks."""
        return EvalItem(
            sample_id=self.id,
            question=self.question,
            images=self.images(),
            cutoff=self.cutoff,
            blocked=self.blocked,
        )


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Samples under a pinned name; iterating again reads again, in the same order.

    `revision` is a commit, tag or release where there is one; `digest` is the sha256 over the data that was
    read; `origin` is the Hub repository it came from, if any. `notes` say what a reader of a score must know (files
    left out, rules applied). `read(False)` promises that `encoded` will not be called, so that a loader may skip
    those bytes.
    """

    name: str
    revision: str
    digest: str
    count: int
    read: Callable[[bool], Iterator[BenchmarkSample]]
    window: str = ""
    notes: tuple[str, ...] = ()
    base_model: str = ""
    origin: str = ""

    def __iter__(self) -> Iterator[BenchmarkSample]:
        return self.read(True)

    def __len__(self) -> int:
        return self.count

    def without_images(self) -> Iterator[BenchmarkSample]:
        """The samples for scoring: `encoded` and `images` may not be called."""
        return self.read(False)

    def only(self, ids: Collection[str]) -> Benchmark:
        """The samples with these ids. Raises `TerminalError` naming ids that are not there."""
        wanted = frozenset(ids)
        known = {sample.id for sample in self.read(False) if sample.id in wanted}
        if missing := sorted(wanted - known):
            raise TerminalError(f"{self.name} has no sample {', '.join(missing[:20])}")
        part = f"ids{len(known)}-{_digest(*sorted(known))[:8]}"
        return self._filtered(lambda sample: sample.id in wanted, len(known), f"only {len(known)} samples by id", part)

    def where(self, tag: str, value: str) -> Benchmark:
        """The samples whose tag has this value."""
        count = sum(1 for sample in self.read(False) if sample.tags.get(tag) == value)
        return self._filtered(
            lambda sample: sample.tags.get(tag) == value, count, f"only {tag} = {value}", f"{tag}={value}"
        )

    def take(self, limit: int) -> Benchmark:
        """The first `limit` samples; the whole if it has no more."""
        if limit >= self.count:
            return self

        def read(images: bool) -> Iterator[BenchmarkSample]:
            for index, sample in enumerate(self.read(images)):
                if index >= limit:
                    return
                yield sample

        return self._part(read, limit, f"only the first {limit} samples", f"first{limit}")

    def _filtered(self, keep: Callable[[BenchmarkSample], bool], count: int, note: str, part: str) -> Benchmark:
        def read(images: bool) -> Iterator[BenchmarkSample]:
            return (sample for sample in self.read(images) if keep(sample))

        return self._part(read, count, note, part)

    def _part(self, read: Callable[[bool], Iterator[BenchmarkSample]], count: int, note: str, part: str) -> Benchmark:
        """A part is data of its own, by name and digest: what is predicted or scored for it never passes for what was
        done for the whole."""
        return replace(
            self,
            name=f"{self.name}.{part}",
            digest=_digest(self.digest, part),
            origin="",
            read=read,
            count=count,
            notes=(*self.notes, note),
        )


def _digest(*told: str) -> str:
    return hashlib.sha256("\n".join(told).encode()).hexdigest()

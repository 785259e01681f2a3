"""NEST+: a declared mixture of benchmarks, as table 2 of the paper has it (NEST, ReasonSeg, RefSeg).

The mixture is a TOML file; nothing about it is implied:

    name = "NEST+"
    seed = 0

    [[part]]
    name = "NEST"
    source = "snapshots/NEST_250323_250411"
    count = 1096

    [[part]]
    name = "RefSeg"
    source = "refcoco:refs/refcoco?split=val&split_by=unc"
    count = 90

Several parts may have one name (RefSeg is drawn from three sets). Samples are drawn by a hash of seed, part, source
and id, so that the draw depends on nothing else, and adding a part changes no other. The paper gives no counts; what
a mixture takes is printed with every score through its digest and notes.
"""

from __future__ import annotations

import hashlib
import heapq
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from engine.core.errors import ConfigError
from engine.core.schema import why
from inference.benchmarks.base import Benchmark, BenchmarkSample
from inference.benchmarks.registry import open_benchmark

TAG = "source_set"


class Part(BaseModel):
    """One `[[part]]`: how many samples of which source stand under which name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1)]
    source: str
    count: int = Field(gt=0)


class Mixture(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "NEST+"
    seed: int = 0
    part: tuple[Part, ...] = Field(min_length=1)


def load(source: Path | str) -> Benchmark:
    """A mixture from its TOML file; sources that are paths are relative to the file.

    Raises `ConfigError` for a file that does not fit or a part that has fewer samples than it is to give.
    """
    path = Path(source)
    try:
        mixture = Mixture.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"the mixture {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"{path} is not a mixture: {why(error)}") from error
    return mix(mixture, [open_benchmark(_relative(part.source, path.parent)) for part in mixture.part])


def mix(mixture: Mixture, benchmarks: list[Benchmark]) -> Benchmark:
    """The mixture of benchmarks that are open already, one per part."""
    drawn: list[frozenset[str]] = []
    digest = hashlib.sha256(mixture.model_dump_json().encode())
    for number, (part, benchmark) in enumerate(zip(mixture.part, benchmarks, strict=True)):
        if len(benchmark) < part.count:
            raise ConfigError(f"part {number} ({part.name}): {part.count} samples of {len(benchmark)} are asked for")
        ranked = heapq.nsmallest(
            part.count, (_rank(mixture.seed, number, benchmark, sample) for sample in benchmark.without_images())
        )
        drawn.append(frozenset(identity for _, identity in ranked))
        digest.update(f"{number} {benchmark.digest}\n".encode())

    def read(images: bool) -> Iterator[BenchmarkSample]:
        for number, (part, benchmark, wanted) in enumerate(zip(mixture.part, benchmarks, drawn, strict=True)):
            for sample in benchmark.read(images):
                if sample.id in wanted:
                    yield replace(
                        sample,
                        id=f"{number}-{part.name}/{sample.id}",
                        tags={**sample.tags, TAG: part.name},
                        image_keys=tuple(f"{number}/{key}" for key in sample.image_keys or (sample.id,)),
                    )

    counts = ", ".join(
        f"{part.count} of {benchmark.name} as {part.name}"
        for part, benchmark in zip(mixture.part, benchmarks, strict=True)
    )
    return Benchmark(
        name=mixture.name,
        revision="",
        digest=digest.hexdigest(),
        count=sum(part.count for part in mixture.part),
        read=read,
        notes=(f"mixture with seed {mixture.seed}: {counts}", *(note for one in benchmarks for note in one.notes)),
    )


def _rank(seed: int, number: int, benchmark: Benchmark, sample: BenchmarkSample) -> tuple[str, str]:
    told = f"{seed}/{number}/{benchmark.name}/{sample.id}"
    return hashlib.sha256(told.encode()).hexdigest(), sample.id


def _relative(source: str, folder: Path) -> str:
    """A path in a source text, taken from the mixture's folder; loader names and Hub names stay."""
    head, colon, rest = source.partition(":")
    plain, query, options = (rest if colon else source).partition("?")
    if not Path(plain).is_absolute() and (folder / plain).exists():
        plain = str(folder / plain)
    return f"{head}:{plain}{query}{options}" if colon else f"{plain}{query}{options}"

"""The line that says under which conditions a figure was obtained, so that others can quote and repeat it.

    nest1|data=NEST_250323_250411@r1|sha256=3f9a...|convention=lisa|unit=pair|base=llava-v1.5-7b|seed=0

The data is the Hub repository where it came from one, else the benchmark's name; the digest is the first 16 hex
digits of the data's. `parse` reads the line back.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.errors import ConfigError
from engine.core.schema import Convention
from inference.benchmarks.base import Benchmark

START = "nest1"


@dataclass(frozen=True, slots=True)
class ScoreString:
    """A score string in parts."""

    dataset: str
    revision: str
    digest: str
    convention: str
    base_model: str
    size_px: int | None
    seed: int


def score_string(
    benchmark: Benchmark, *, convention: Convention, base_model: str = "", size_px: int | None = None, seed: int = 0
) -> str:
    """The string of a scoring run."""
    parts = [
        START,
        f"data={benchmark.origin or benchmark.name}" + (f"@{benchmark.revision}" if benchmark.revision else ""),
        f"sha256={benchmark.digest[:16]}",
        f"convention={convention}",
        "unit=pair",
    ]
    if base_model:
        parts.append(f"base={base_model}")
    if size_px:
        parts.append(f"size={size_px}")
    parts.append(f"seed={seed}")
    return "|".join(parts)


def parse(text: str) -> ScoreString:
    """Read a score string. Raises `ConfigError` for anything else."""
    start, *rest = text.strip().split("|")
    fields = dict(part.partition("=")[::2] for part in rest)
    if start != START or not {"data", "sha256", "convention"} <= fields.keys():
        raise ConfigError(f"'{text}' is no score string: it begins with {START}| and names data, sha256 and convention")
    dataset, _, revision = fields["data"].partition("@")
    for name in ("size", "seed"):
        value = fields.get(name, "0")
        if not (value.isascii() and value.isdecimal() and len(value) < 19):
            raise ConfigError(f"'{text}' is no score string: its {name} is '{value}', not a whole number")
    size, seed = int(fields.get("size", "0")), int(fields.get("seed", "0"))
    return ScoreString(
        dataset=dataset,
        revision=revision,
        digest=fields["sha256"],
        convention=fields["convention"],
        base_model=fields.get("base", ""),
        size_px=size or None,
        seed=seed,
    )

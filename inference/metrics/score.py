"""Scoring: a benchmark and predictions stream by once, and a `ScoreReport` comes out.

The unit is the (image, mask) pair: gIoU is the mean over pairs and cIoU the ratio of sums over pairs, and the
per-sample mean is given beside them. Memory holds a few integers per pair and never masks, so that a benchmark of
any size is scored. What is wrong with the predictions (unknown ids, wrong sizes, wrong counts of masks) is one
error with all ids named; a missing prediction or a failure is counted apart and is no zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.core.errors import ConfigError
from engine.core.geometry import Mask
from engine.core.schema import Convention, Prediction, ScoreReport
from inference.benchmarks.base import Benchmark
from inference.metrics.bootstrap import RESAMPLES
from inference.metrics.conventions import CONVENTIONS
from inference.metrics.join import Joiner
from inference.metrics.walk import Walk

Masks = Sequence[Mask | None]
#: Another truth for the same samples: masks by sample id, or None where it has none for a sample.
Truth = Callable[[str], Masks | None] | Mapping[str, Masks]
NAMED = 50


def score(
    benchmark: Benchmark,
    predictions: Mapping[str, Iterable[Prediction]],
    *,
    convention: Convention = "lisa",
    truths: Mapping[str, Truth] | None = None,
    truth_name: str = "snapshot",
    descriptions: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    size_px: int | None = None,
    novelty_model: str = "",
    judged: Mapping[str, Mapping[str, bool]] | None = None,
    cutoffs: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    workers: int = 2,
) -> ScoreReport:
    """Score predictions by segmenter name against the benchmark's masks and any other truths.

    `truths` are further masks by name; samples they do not have are left out there. `descriptions` say what each
    truth is. `size_px` resizes both masks to that square first (480 for GRES). `novelty_model` names the model whose
    novel/emerging labels are the headline split. `judged` holds verdicts of a judge by segmenter and sample id.
    `cutoffs` are the segmenters' knowledge cut-offs (YYYY-MM-DD). `workers` are threads for decoding.

    Raises `ConfigError` with every complaint for predictions that do not belong to the benchmark or do not fit it,
    and `TerminalError` for a benchmark that cannot be read.
    """
    if convention not in CONVENTIONS:
        raise ConfigError(f"there is no convention '{convention}': use {', '.join(CONVENTIONS)}")
    if not predictions:
        raise ConfigError("there are no predictions to score: name at least one segmenter")
    others = dict(truths or {})
    if truth_name in others:
        raise ConfigError(f"two truths are called '{truth_name}': give the other one another name")
    walk = Walk(
        joiners=[Joiner(name, found) for name, found in predictions.items()],
        truth_name=truth_name,
        others={name: _lookup(found) for name, found in others.items()},
        seed=seed,
        size_px=size_px,
        workers=workers,
    )
    with contextlib.closing(walk):
        walk.run(benchmark)
        if complaints := walk.complaints():
            shown = "; ".join(complaints[:NAMED])
            more = f"; and {len(complaints) - NAMED} more" if len(complaints) > NAMED else ""
            raise ConfigError(f"the predictions do not fit {benchmark.name}: {shown}{more}")
        from inference.metrics.summary import summarise

        return summarise(
            benchmark,
            walk,
            convention=convention,
            seed=seed,
            resamples=resamples,
            size_px=size_px,
            novelty_model=novelty_model or benchmark.base_model,
            judged=judged or {},
            cutoffs=cutoffs or {},
            notes=notes,
            descriptions=descriptions or {},
        )


def _lookup(truth: Truth) -> Callable[[str], Masks | None]:
    return truth if callable(truth) else truth.get

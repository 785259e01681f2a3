"""Metrics: one decorator each. A metric is a ratio of two sums over (image, mask) pairs.

A metric is a function of the columns as the report's convention counts them, and gives each pair's share of the
numerator and of the denominator. Because both are sums over pairs, figures of any part of the data, bootstrap
intervals and paired differences follow without further code; a mean of means cannot be written.

    @metric("pr@0.9", title="Pr@0.9", about="share of present targets met with an IoU of at least 0.9")
    def precision_90(e: Effective) -> Terms:
        return Terms(e.counted & (e.units.target > 0) & (e.iou >= 0.9), e.counted & (e.units.target > 0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inference.metrics.conventions import Effective
from inference.metrics.units import Reals


@dataclass(frozen=True, slots=True)
class Terms:
    """Per pair: what it adds above and below the fraction line."""

    top: npt.NDArray[np.float64] | npt.NDArray[np.bool_]
    bottom: npt.NDArray[np.float64] | npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Metric:
    """A registered metric. `headline` ones are also reported for the other conventions and counted strictly."""

    name: str
    title: str
    about: str
    terms: Callable[[Effective], Terms]
    headline: bool = False


METRICS: dict[str, Metric] = {}


def metric(
    name: str, *, title: str, about: str, headline: bool = False
) -> Callable[[Callable[[Effective], Terms]], Callable[[Effective], Terms]]:
    """Register a metric under a name that stands in `report.json`; a name can be given once."""

    def register(function: Callable[[Effective], Terms]) -> Callable[[Effective], Terms]:
        if name in METRICS:
            raise ValueError(f"a metric {name} is already there")
        METRICS[name] = Metric(name, title, about, function, headline)
        return function

    return register


def sums(found: Metric, effective: Effective) -> tuple[Reals, Reals]:
    """A metric's columns as float64; pairs that are not counted are zero in both."""
    terms = found.terms(effective)
    return np.asarray(terms.top, dtype=np.float64), np.asarray(terms.bottom, dtype=np.float64)

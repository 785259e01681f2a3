"""The published ways of turning pixel counts into scores; a report says which one its figures follow.

`lisa`      LISA, `train_ds.py:validate`: ignored pixels leave both masks; nothing there and nothing predicted is
            an IoU of 1 and adds nothing to cIoU; nothing there and something predicted is 0 and its pixels join
            the union. (LISA adds 1e-5 to each union; that is left out and changes the eighth digit.)
`gres`      GRES, `gres_model/evaluation/refer_evaluation.py`: whether "nothing is there" was said decides, not the
            mask: rightly said is 1 and adds nothing to cIoU, wrongly said is 0 and keeps the union. N-acc and
            T-acc are the shares of absent and of present targets that were told right. GRES has no ignored pixels;
            here they leave both masks as in `lisa`. Its evaluator scores at 480x480: ask for `size_px=480`
            (it resizes polygons before painting, we painted masks, so that edges may differ by a pixel).
`seg-zero`  Seg-Zero, `evaluation_scripts/evaluation.py`, for comparison only: pixels to ignore count as the
            object, a pair with an empty union is dropped, a reply that could not be read counts as a wrong empty
            mask, any other failure is dropped.

A segmenter's failures and missing predictions are in no figure of `lisa` and `gres`; `Units.strict` counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.schema import Convention
from inference.metrics.units import FAILURES, SCORED, Flags, Reals, Units

#: what Seg-Zero's evaluator sees as a reply without a usable box
UNREAD = tuple(FAILURES.index(kind) for kind in ("bad_reply", "no_box", "no_reply"))
#: a failed or missing pair that `Units.strict` turned into a wrong empty mask
STRICT_LOSS = -2


@dataclass(frozen=True, slots=True)
class Effective:
    """Columns as a convention counts them; `counted` marks the pairs that are in its sums."""

    iou: Reals
    intersection: Reals
    union: Reals
    counted: Flags
    units: Units


def lisa(units: Units) -> Effective:
    """LISA's rule."""
    inter, union = units.intersection.astype(np.float64), units.union.astype(np.float64)
    iou = np.where(union > 0, inter / np.maximum(union, 1.0), 1.0)
    # a lost pair counts as wrong even where nothing is there: no reply is not the reply "nothing"
    iou = np.where(units.failure == STRICT_LOSS, 0.0, iou)
    return Effective(iou, inter, union, units.status == SCORED, units)


def gres(units: Units) -> Effective:
    """GRES's rule."""
    absent, said = units.target == 0, units.said_none
    inter, union = units.intersection.astype(np.float64), units.union.astype(np.float64)
    inter = np.where(absent | said, 0.0, inter)
    union = np.where(absent & said, 0.0, union)
    iou = np.where(absent, said.astype(np.float64), inter / np.maximum(union, 1.0))
    return Effective(iou, inter, union, units.status == SCORED, units)


def seg_zero(units: Units) -> Effective:
    """Seg-Zero's rule, as published."""
    unread = np.isin(units.failure, UNREAD) & (units.status != SCORED)
    target = units.target + units.ignored
    predicted = np.where(unread, 0, units.predicted + units.predicted_ignored)
    inter = np.where(unread, 0, units.intersection + units.predicted_ignored).astype(np.float64)
    union = (target + predicted).astype(np.float64) - inter
    counted = ((units.status == SCORED) | unread) & (union > 0)
    return Effective(inter / np.maximum(union, 1.0), inter, union, counted, units)


CONVENTIONS: dict[Convention, Callable[[Units], Effective]] = {"lisa": lisa, "gres": gres, "seg-zero": seg_zero}
SAID: dict[str, str] = {
    "lisa": "ignored pixels leave both masks; empty against empty is 1; gIoU is the mean IoU over (image, mask) "
    "pairs, cIoU the sum of intersections over the sum of unions",
    "gres": "whether 'nothing is there' was said decides for absent targets; N-acc and T-acc beside it",
    "seg-zero": "as published: ignored pixels count as the object, empty against empty is dropped; for comparison only",
}

"""Does a `Segmenter` keep its contract? For the tests of built-in segmenters and of plugins.

`check_segmenter` tries each rule on pictures of several shapes. Whether the masks are any good is for scores to say.
Servers of the `remote` protocol have rules of their own, see `contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.geometry import Image
from engine.core.protocols import Segmenter, SegmentRequest, SegmentResult

#: Share of pixels that may differ between a batch and one at a time: a logit of about 0 falls to either side.
ROUNDING = 0.001


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is not kept, and what was found instead."""

    rule: str
    detail: str


def check_segmenter(segmenter: Segmenter, requests: Sequence[SegmentRequest]) -> list[Breach]:
    """The rules that are not kept; `requests` should hold images of several shapes and one image twice."""
    found: list[Breach] = []
    refs = segmenter.models()
    if not segmenter.name or not refs or any(not ref.name or not ref.role for ref in refs):
        found.append(Breach("it names itself and its models", f"{segmenter.name!r}: {refs}"))
    if list(segmenter.segment([])):
        found.append(Breach("nothing asked, nothing answered", "results for no requests"))
    before = [request.image.copy() for request in requests]
    first = list(segmenter.segment(requests))
    if len(first) != len(requests):
        return [*found, Breach("one result per request", f"{len(first)} results for {len(requests)} requests")]
    for place, (request, result) in enumerate(zip(requests, first, strict=True)):
        if told := _wrong(request.image, result):
            found.append(Breach("a mask of the image's size, or a failure with its kind", f"{place}: {told}"))
    if any(not np.array_equal(old, request.image) for old, request in zip(before, requests, strict=True)):
        found.append(Breach("images are left as they are", "an image was changed"))
    again = list(segmenter.segment(requests))
    if any(not _same(one, other, rounding=0.0) for one, other in zip(first, again, strict=True)):
        found.append(Breach("the same requests give the same results", "a second call differs"))
    alone = [segmenter.segment([request])[0] for request in requests]
    if odd := [n for n, (one, other) in enumerate(zip(first, alone, strict=True)) if not _same(one, other)]:
        found.append(Breach("a result does not depend on its neighbours", f"results {odd} differ when asked alone"))
    return found


def _wrong(image: Image, result: SegmentResult) -> str:
    if (result.mask is None) == (result.failure is None):
        return "neither or both of mask and failure"
    if result.mask is not None and (result.mask.dtype != bool or result.mask.shape != image.shape[:2]):
        return f"a mask {result.mask.dtype} {result.mask.shape} for an image of {image.shape[:2]}"
    return ""


def _same(one: SegmentResult, other: SegmentResult, *, rounding: float = ROUNDING) -> bool:
    if one.mask is None or other.mask is None:
        same_kind = one.failure is not None and other.failure is not None and one.failure.kind == other.failure.kind
        return one.mask is other.mask and same_kind
    if one.mask.shape != other.mask.shape:
        return False
    return int(np.count_nonzero(one.mask != other.mask)) <= rounding * one.mask.size

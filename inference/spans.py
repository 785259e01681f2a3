"""Masks as spans: where they begin and end when the pixels are read down the columns, as COCO's run-length codes are.

Counting with spans costs as much as there are spans, not pixels. Finding them in a decoded picture is the one step
that looks at pixels, so it touches only the part around the object. Counts and conventions live in
`inference.metrics`, files in `inference.benchmarks`.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engine.core.geometry import Mask

Places = npt.NDArray[np.int64]
Grey = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Spans:
    """A mask as `edges` begin, end, begin, end ... (ascending, end just outside) down the columns, and `before`,
    the number of its pixels before each edge."""

    edges: Places
    before: Places

    @classmethod
    def of(cls, edges: Places) -> Spans:
        """From edges in even number."""
        before = np.zeros(len(edges), dtype=np.int64)
        np.cumsum(edges[1::2] - edges[::2], out=before[1::2])
        before[2::2] = before[1:-1:2]
        return cls(edges, before)

    @property
    def area(self) -> int:
        return int(self.before[-1]) if len(self.before) else 0

    def shared(self, edges: Places) -> int:
        """Pixels of the mask inside other spans (begin, end, begin, end ...) that do not overlap each other."""
        if not len(self.edges) or not len(edges):
            return 0
        # the count is linear between edges with slope 0 or 1, so that float64 interpolation is exact
        inside = np.interp(edges, self.edges, self.before)
        return int(inside[1::2].sum() - inside[::2].sum())

    def in_box(self, box: tuple[int, int, int, int], height: int) -> int:
        """Pixels of the mask inside a box x1, y1, x2, y2 (half-open) of an image of that height."""
        x1, y1, x2, y2 = box
        begins, ends = self.edges[::2], self.edges[1::2]
        columns = begins // height
        starts = columns * height
        if (ends - starts <= height).all():  # each span lies in one column, as outlines of things do
            inside = np.minimum(ends - starts, y2) - np.maximum(begins - starts, y1)
            return int(inside[(columns >= x1) & (columns < x2) & (inside > 0)].sum())
        edges = np.empty(2 * (x2 - x1), dtype=np.int64)
        edges[::2] = np.arange(x1, x2, dtype=np.int64) * height + y1
        edges[1::2] = edges[::2] + (y2 - y1)
        return self.shared(edges)


#: Rows that are tested for being blank at a time.
BAND = 64
NONE = Spans.of(np.zeros(0, dtype=np.int64))


def spans_of(mask: Mask) -> Spans:
    """The spans of a boolean mask (H, W)."""
    found = _spans(np.ascontiguousarray(mask).view(np.uint8), 1)
    assert found is not None  # a boolean array holds nothing but 0 and 1
    return found


def spans_of_grey(grey: Grey) -> Spans | None:
    """The spans of a grey picture (H, W) of 0 and 255; None if it has any other value."""
    return _spans(grey, 255)


def _rows(grey: Grey) -> tuple[int, int] | None:
    """First row that is not all zero, and the one after the last; None for none. Most of the picture is not looked at
    twice, and blank parts are passed over by the fastest test that there is for them."""
    height, width = grey.shape
    lit = np.ascontiguousarray(grey).view(np.bool_)
    place = int(lit.reshape(-1).argmax())
    top = place // width
    if not lit[top].any():
        return None
    for below in range(height, top, -BAND):
        start = max(top, below - BAND)
        if lit[start:below].any():
            return top, start + int(np.flatnonzero(grey[start:below].max(axis=1))[-1]) + 1
    raise AssertionError("unreachable: the top row is not blank")


def _spans(grey: Grey, on: int) -> Spans | None:
    if not grey.size:
        return NONE
    found = _rows(grey)
    if found is None:
        return NONE
    y, below = found
    columns = np.flatnonzero(grey[y:below].max(axis=0))
    x, right = int(columns[0]), int(columns[-1]) + 1
    # only the part around the object is turned; a row of background below keeps its columns apart
    part = cv2.copyMakeBorder(grey[y:below, x:right], 0, 1, 0, 0, cv2.BORDER_CONSTANT, value=0)
    flat = cv2.transpose(part).reshape(-1)
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if flat[0]:
        edges = np.concatenate([[0], edges])
    # every run has one value: if those are off and on in turn, no pixel has another
    if len(edges) % 2 or (flat[edges[::2]] != on).any() or flat[edges[1::2]].any():
        return None
    column, row = np.divmod(edges.astype(np.int64), below - y + 1)
    places = (x + column) * grey.shape[0] + y + row
    # a span that goes on in the next column is one
    joined = np.flatnonzero(places[1:-1:2] == places[2::2])
    if len(joined):
        joined = joined * 2 + 1
        places = np.delete(places, np.concatenate([joined, joined + 1]))
    return Spans.of(places)

"""Boxes and points in the replies of vision models, as pixels of the original image.

Read are the published reply forms of Seg-Zero and VisionReasoner: a JSON list of {bbox_2d, point_2d} or one object with
bbox and points_1, points_2 inside <answer>, and `<box>(x,y),(x,y)</box><points>(x,y),(x,y)</points>`; also a JSON list
in a code fence. The coordinate space belongs to the model and its prompt and is given, never guessed from the size of
the numbers. Making a mask is `seg_zero`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from engine.core.geometry import Box

Space = Literal["resized_840", "norm_1000", "norm_1"]
#: Units of a whole side in each space.
SIDES: dict[Space, float] = {"resized_840": 840.0, "norm_1000": 1000.0, "norm_1": 1.0}
_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_PAIR = rf"\({_NUMBER},{_NUMBER}\)"
_TAGGED_BOX = re.compile(rf"<box>\s*{_PAIR}\s*,?\s*{_PAIR}\s*</box>", re.IGNORECASE)
_TAGGED_POINTS = re.compile(r"<points?>(.*?)</points?>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object of a reply: its box, and points (x, y) inside it, in pixels of the original image, clipped to it."""

    box: Box
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class BoxReply:
    """The objects of a reply. None of them and `dropped` 0 means that the model says nothing is there; `dropped` counts
    entries that hold no box with a width and a height."""

    objects: tuple[FoundObject, ...]
    dropped: int = 0


def read_boxes(text: str, *, space: Space, width: int, height: int) -> BoxReply | None:
    """The objects of a reply about an image of `width` x `height`; None if it cannot be read.

    What stands in <think> is not the answer. Corners in the wrong order are sorted, numbers written as text are read.
    """
    answer = _answer_of(text)
    tagged = _tagged(answer)
    entries = tagged if tagged is not None else _json_entries(answer)
    if entries is None:
        return None
    across, down = width / SIDES[space], height / SIDES[space]
    objects: list[FoundObject] = []
    dropped = 0
    for corners, points in entries:
        box = _box(corners, across, down, width, height)
        if box is None:
            dropped += 1
            continue
        placed = [(_within(x * across, width), _within(y * down, height)) for x, y in points]
        objects.append(FoundObject(box=box, points=tuple(placed)))
    return BoxReply(objects=tuple(objects), dropped=dropped)


Entry = tuple[list[float] | None, list[tuple[float, float]]]


def _answer_of(text: str) -> str:
    """What is said after thinking: the last <answer>, an unclosed one too, or the text without <think>."""
    answers = re.findall(r"<answer>(.*?)(?:</answer>|$)", text, re.IGNORECASE | re.DOTALL)
    if answers:
        return str(answers[-1]).strip()
    return re.sub(r"<think>.*?(?:</think>|$)", "", text, flags=re.IGNORECASE | re.DOTALL).strip()


def _tagged(answer: str) -> list[Entry] | None:
    boxes = [[float(n) for n in match.groups()] for match in _TAGGED_BOX.finditer(answer)]
    if not boxes:
        return None
    points = [
        [(float(x), float(y)) for x, y in re.findall(_PAIR, match.group(1))]
        for match in _TAGGED_POINTS.finditer(answer)
    ]
    return [(box, points[place] if place < len(points) else []) for place, box in enumerate(boxes)]


def _json_entries(answer: str) -> list[Entry] | None:
    value = _decode(answer)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    return [(_numbers(_first(entry, "bbox_2d", "bbox", "box")), list(_points(entry))) for entry in value]


def _decode(answer: str) -> Any:
    """The JSON of an answer: as it is, in one code fence, or behind some words; None if there is none."""
    fence = re.fullmatch(r"```[a-z]*\s*(.*?)\s*```", answer, re.DOTALL | re.IGNORECASE)
    text = fence.group(1) if fence else answer
    try:
        return json.loads(text)
    except ValueError:
        start = min((place for place in (text.find("["), text.find("{")) if place >= 0), default=-1)
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except ValueError:
        return None


def _first(entry: Any, *names: str) -> Any:
    return next((entry[name] for name in names if name in entry), None) if isinstance(entry, dict) else None


def _points(entry: Any) -> Iterator[tuple[float, float]]:
    if not isinstance(entry, dict):
        return
    for name in ("point_2d", "points_1", "points_2", "point"):
        found = _numbers(entry.get(name), count=2)
        if found is not None:
            yield found[0], found[1]


def _numbers(value: Any, *, count: int = 4) -> list[float] | None:
    if not isinstance(value, list) or len(value) != count:
        return None
    try:
        found = [float(part) for part in value if not isinstance(part, bool)]
    except (TypeError, ValueError):
        return None
    # NaN and infinity pass float() and are no places
    return found if len(found) == count and all(abs(part) < 1e9 for part in found) else None


def _box(corners: list[float] | None, across: float, down: float, width: int, height: int) -> Box | None:
    if corners is None:
        return None
    left, right = sorted((corners[0] * across, corners[2] * across))
    top, bottom = sorted((corners[1] * down, corners[3] * down))
    box = Box(left, top, right, bottom).clip(width, height)
    return box if box.width > 0 and box.height > 0 else None


def _within(value: float, limit: int) -> float:
    return min(max(value, 0.0), float(limit))
